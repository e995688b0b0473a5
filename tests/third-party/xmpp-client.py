"""A person on XMPP, with slixmpp: takes commands as lines of JSON, and prints what comes as lines of JSON."""

import asyncio
import json
import logging
import sys

import slixmpp

OPTIONS = json.loads(sys.argv[1])


class Person(slixmpp.ClientXMPP):
    def __init__(self):
        super().__init__(OPTIONS["address"], OPTIONS["password"])
        for plugin in ["xep_0030", "xep_0045", "xep_0085", "xep_0199", "xep_0308", "xep_0363", "xep_0066"]:
            self.register_plugin(plugin)
        # The server of the tests encrypts nothing.
        self.plugin["feature_mechanisms"].unencrypted_scram = True
        self.plugin["feature_mechanisms"].unencrypted_plain = True
        self.enable_direct_tls = False
        self.enable_starttls = False
        self.enable_plaintext = True
        self.add_event_handler("session_start", self.begin)
        self.add_event_handler("message", self.hear)
        self.add_event_handler("groupchat_presence", self.see)
        self.add_event_handler("presence_subscribed", lambda stanza: say(event="subscribed", sender=str(stanza["from"])))
        self.register_handler(
            slixmpp.xmlstream.handler.Callback(
                "raw", slixmpp.xmlstream.matcher.MatchXPath("{jabber:client}message"), self.raw
            )
        )

    async def begin(self, _):
        self.send_presence()
        await self.get_roster()
        if room := OPTIONS.get("room"):
            await self.plugin["xep_0045"].join_muc_wait(slixmpp.JID(room), OPTIONS["nick"], maxstanzas=0)
        say(event="ready")

    def raw(self, stanza):
        say(event="stanza", xml=str(stanza))

    def hear(self, stanza):
        say(
            event="message", sender=str(stanza["from"]), kind=stanza["type"], text=stanza["body"], id=stanza["id"],
            replaces=stanza["replace"]["id"] if stanza.xml.find("{urn:xmpp:message-correct:0}replace") is not None else None,
        )

    def see(self, stanza):
        say(event="presence", sender=str(stanza["from"]), kind=stanza["type"])

    async def run(self, command):
        if command["do"] == "raw":
            self.send_raw(command["xml"])
        elif command["do"] == "upload":
            url = await self.plugin["xep_0363"].upload_file(
                "note.txt", input_file=__import__("io").BytesIO(command["text"].encode()), size=len(command["text"].encode()),
                content_type="text/plain",
            )
            say(event="uploaded", url=str(url))
        else:
            message = self.make_message(mto=command["to"], mbody=command["text"], mtype=command.get("kind", "chat"))
            if command.get("id"):
                message["id"] = command["id"]
            if url := command.get("url"):
                message["oob"]["url"] = url
            message.send()


def say(**event):
    print(json.dumps(event), flush=True)


async def main():
    person = Person()
    person.add_event_handler("disconnected", lambda _: say(event="disconnected"))
    person.connect(OPTIONS["host"], OPTIONS["port"])
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        try:
            await person.run(json.loads(line))
        except Exception as error:  # The test sees it in the output.
            say(event="failed", why=repr(error))


logging.basicConfig(level=logging.ERROR)
asyncio.run(main())
