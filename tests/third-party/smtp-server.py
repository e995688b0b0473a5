"""An SMTP server (aiosmtpd) that writes each mail into a directory, as Python's own parser reads it.

Argument: a JSON object with `port`, `directory`, `user`, `password`, and for STARTTLS `cert` and `key`; with
`fromTheStart` for TLS from the first byte, and then with no login but LOGIN. Mails become the files 1.json, 2.json, … It ends when its standard input does. What recipients do: `later@` is refused with 451 until the file
`accept` is in the directory, `never@` with 550; `drop@` gets its mail, and the connection ends without an answer. While the file `locked` is there, no password is right.
"""

import base64
import email.policy
import json
import os
import ssl
import sys

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult

options = json.loads(sys.argv[1])
directory = options["directory"]


class Handler:
    count = 0

    async def auth_XOAUTH2(self, server, args):
        said = base64.b64decode(args[1]) if len(args) > 1 else await server.challenge_auth(b"")
        is_right = said == f"user={options['user']}\x01auth=Bearer {options['password']}\x01\x01".encode()
        return AuthResult(success=is_right, handled=False)

    async def handle_RCPT(self, server, session, envelope, address, rcpt_options):
        if address.startswith("never@"):
            return "550 there is no such person"
        if address.startswith("later@") and not os.path.exists(os.path.join(directory, "accept")):
            return "451 try again later"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        Handler.count += 1
        mail = email.message_from_bytes(envelope.original_content, policy=email.policy.default)
        body = {kind: mail.get_body([kind]) for kind in ["plain", "html"]}
        files = [
            {"name": part.get_filename(), "data": base64.b64encode(part.get_payload(decode=True)).decode()}
            for part in mail.iter_attachments()
        ]
        seen = {
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "headers": {name: str(value) for name, value in mail.items()},
            "plain": body["plain"] and body["plain"].get_content(),
            "html": body["html"] and body["html"].get_content(),
            "files": files,
        }
        path = os.path.join(directory, f"{Handler.count}.json")
        with open(path + ".new", "w") as file:
            json.dump(seen, file)
        os.rename(path + ".new", path)
        if envelope.rcpt_tos[0].startswith("drop@"):
            server.transport.abort()
        return "250 OK"


def authenticate(server, session, envelope, mechanism, data):
    is_right = (data.login.decode(), data.password.decode()) == (options["user"], options["password"])
    is_locked = os.path.exists(os.path.join(directory, "locked"))
    return AuthResult(success=is_right and not is_locked, handled=False)


starts_encrypted = options.get("fromTheStart", False)
context = None
if "cert" in options:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(options["cert"], options["key"])
controller = Controller(
    Handler(),
    hostname="127.0.0.1",
    port=options["port"],
    authenticator=authenticate,
    auth_required=True,
    auth_require_tls=context is not None and not starts_encrypted,
    require_starttls=context is not None and not starts_encrypted,
    tls_context=None if starts_encrypted else context,
    ssl_context=context if starts_encrypted else None,
    auth_exclude_mechanism=["PLAIN"] if starts_encrypted else [],
    data_size_limit=30_000_000,
)
controller.start()
print("ready", flush=True)
sys.stdin.read()
controller.stop()
