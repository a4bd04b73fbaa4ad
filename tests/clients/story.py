"""One story with the official Python client library: delegate, wait, answer, read the result and its file.

usage: story.py legacy|auto stdio COMMAND [ARGUMENT...]
       story.py legacy|auto http URL TOKEN

`legacy` is the handshake of the 2025 versions, `auto` finds 2026-07-28. Prints one line of JSON for each event.
"""

import asyncio
import json
import sys

import httpx2
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult

MODE, KIND, *REST = sys.argv[1:]
# Looks at a run; each waits for the host. More mean that the story does not go on.
MAX_LOOKS = 600


def tell(**event):
    print(json.dumps(event), flush=True)


async def answer(_context, params):
    """The person in front of the client: says blue, in the only field of a form, or opens an address."""
    if params.mode == "url":
        tell(event="waits", kind="approval", page=params.url)
        return ElicitResult(action="accept")
    [(name, field)] = params.requested_schema["properties"].items()
    tell(event="elicitation", message=params.message, field=field)
    return ElicitResult(action="accept", content={name: "blue"})


async def call(client, name, **arguments):
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result
    assert json.loads(result.content[0].text) == result.structured_content, result
    return result.structured_content


async def story(client):
    tools = [tool.name for tool in (await client.list_tools()).tools]
    tell(event="connected", version=client.session.protocol_version, tools=tools)
    run = await call(client, "core_act", task="paint the room", tools=["write"])
    tell(event="started", runId=run["runId"])
    seen = None
    for _ in range(MAX_LOOKS):
        run = (await call(client, "core_task", action="wait", runId=run["runId"], waitSeconds=20))["run"]
        if run["isOver"]:
            break
        if waits := run.get("waitsFor"):
            if waits["id"] != seen:
                seen = waits["id"]
                tell(event="waits", kind=waits["kind"], page=waits.get("page"), next=run["next"])
            await asyncio.sleep(0.1)
    tell(event="over", status=run["status"], answer=run.get("answer"), artifacts=run.get("artifacts"))
    read = await call(client, "core_task", action="artifact", runId=run["runId"], path="plan.txt")
    tell(event="artifact", text=read["artifact"]["text"])


async def main():
    if KIND == "stdio":
        server = StdioServerParameters(command=REST[0], args=REST[1:], env={})
        async with Client(server, mode=MODE, elicitation_callback=answer) as client:
            await story(client)
    else:
        url, token = REST
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(headers=headers, timeout=120) as http:
            server = streamable_http_client(url, http_client=http)
            async with Client(server, mode=MODE, elicitation_callback=answer) as client:
                await story(client)


asyncio.run(main())
