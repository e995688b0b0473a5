"""A person with a Matrix client that encrypts (matrix-nio). Reads commands as lines of JSON, answers each with one line.

Arguments: the homeserver's URL, the name and password of the person, a directory for keys.
"""

import asyncio
import io
import json
import sys
import uuid

from nio import AsyncClient, AsyncClientConfig, MegolmEvent, RoomEncryptedFile, RoomMessage
from nio.crypto import decrypt_attachment
from nio.event_builders import EnableEncryptionBuilder
from nio.responses import ShareGroupSessionResponse

url, name, password, directory = sys.argv[1:]
heard = []
held = []


class Client(AsyncClient):
    """Can hold back the keys of its messages."""

    holds = False

    async def _send(self, response_class, method, path, data=None, response_data=None, **rest):
        if self.holds and response_class is ShareGroupSessionResponse:
            held.append((response_class, method, path, data, response_data))
            return ShareGroupSessionResponse(*response_data)
        return await super()._send(response_class, method, path, data, response_data, **rest)


async def take(room, event):
    if event.sender == client.user_id:
        return
    entry = {"room": room.room_id, "event": event.event_id, "encrypted": event.decrypted}
    if isinstance(event, MegolmEvent):
        entry["unreadable"] = True
    else:
        entry["content"] = event.source["content"]
        entry["body"] = event.body
    heard.append(entry)


async def synchronise(timeout=0):
    await client.sync(timeout=timeout)
    if client.should_upload_keys:
        await client.keys_upload()
    if client.should_query_keys:
        await client.keys_query()
    if client.should_claim_keys:
        await client.keys_claim(client.get_users_for_key_claiming())
    await client.send_to_device_messages()


async def prepare(room):
    await synchronise()
    if client.rooms[room].encrypted:
        await client.joined_members(room)
        if client.should_query_keys:
            await client.keys_query()


async def send(room, content):
    sent = await client.room_send(
        room, "m.room.message", content, tx_id=str(uuid.uuid4()), ignore_unverified_devices=True
    )
    return {"event": sent.event_id}


async def do(command):
    match command["do"]:
        case "room":
            state = [EnableEncryptionBuilder().as_dict()] if command["encrypted"] else []
            made = await client.room_create(invite=command["invite"], initial_state=state, is_direct=True)
            await synchronise()
            return {"room": made.room_id}
        case "encrypt":
            content = EnableEncryptionBuilder().as_dict()["content"]
            await client.room_put_state(command["room"], "m.room.encryption", content)
            await synchronise()
            return {}
        case "members":
            while len((await client.joined_members(command["room"])).members) < command["count"]:
                await synchronise(timeout=100)
            return {}
        case "say":
            await prepare(command["room"])
            client.holds = command.get("holds", False)
            content = {"msgtype": "m.text", "body": command["text"]}
            content.update(command.get("more", {}))
            sent = await send(command["room"], content)
            client.holds = False
            return sent
        case "release":
            for arguments in held:
                await client._send(*arguments)
            return {"count": len(held)}
        case "file":
            await prepare(command["room"])
            data = command["text"].encode()
            uploaded, key = await client.upload(
                io.BytesIO(data), "application/octet-stream", encrypt=True, filesize=len(data)
            )
            key["url"] = uploaded.content_uri
            if command.get("damaged"):
                key["hashes"]["sha256"] = "A" * 43
            return await send(
                command["room"],
                {"msgtype": "m.file", "body": command["name"], "file": key, "info": {"size": len(data)}},
            )
        case "heard":
            await synchronise(timeout=200)
            return {"heard": heard}
        case "read":
            content = command["content"]
            downloaded = await client.download(content["file"]["url"])
            key = content["file"]
            data = decrypt_attachment(downloaded.body, key["key"]["k"], key["hashes"]["sha256"], key["iv"])
            return {"text": data.decode()}


async def main():
    global client
    config = AsyncClientConfig(encryption_enabled=True, store_sync_tokens=True)
    client = Client(url, name, store_path=directory, config=config)
    await client.login(password)
    client.add_event_callback(take, (RoomMessage, RoomEncryptedFile, MegolmEvent))
    await synchronise()
    print(json.dumps({"device": client.device_id}), flush=True)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        print(json.dumps(await do(json.loads(line))), flush=True)
    await client.close()


asyncio.run(main())
