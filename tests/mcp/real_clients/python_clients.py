"""One MCP client for Python: `python python_clients.py NAME URL KEY`, in a virtual environment that has it.

Prints what the runner checks, as JSON.
"""

import asyncio
import json
import sys

from flow import document, use, use_async


def bearer(key):
    return {"Authorization": f"Bearer {key}"}


async def python_sdk(name, url, key):
    import httpx2
    from mcp.client.client import Client
    from mcp.client.streamable_http import streamable_http_client

    async with (
        httpx2.AsyncClient(headers=bearer(key), timeout=30) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        tools = [tool.name for tool in (await client.list_tools()).tools]

        async def call(tool, arguments):
            return (await client.call_tool(tool, arguments)).structured_content

        return await use_async(name, tools, call)


async def python_sdk_1(name, url, key):
    from mcp import ClientSession
    from mcp.client.streamable_http import streamablehttp_client

    async with (
        streamablehttp_client(url, headers=bearer(key)) as (read, write, _),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        tools = [tool.name for tool in (await session.list_tools()).tools]

        async def call(tool, arguments):
            return (await session.call_tool(tool, arguments)).structuredContent

        return await use_async(name, tools, call)


async def fastmcp(name, url, key):
    from fastmcp import Client
    from fastmcp.client.transports import StreamableHttpTransport

    async with Client(StreamableHttpTransport(url, headers=bearer(key))) as client:
        tools = [tool.name for tool in await client.list_tools()]

        async def call(tool, arguments):
            return (await client.call_tool(tool, arguments)).structured_content

        return await use_async(name, tools, call)


async def langchain(name, url, key):
    from langchain_mcp_adapters.client import MultiServerMCPClient

    server = {"transport": "streamable_http", "url": url, "headers": bearer(key)}
    tools = {tool.name: tool for tool in await MultiServerMCPClient({"holdfast": server}).get_tools()}

    async def call(tool, arguments):
        return document(await tools[tool].ainvoke(arguments))

    return await use_async(name, tools, call)


async def pydantic_ai(name, url, key):
    from fastmcp import Client
    from fastmcp.client.transports import StreamableHttpTransport
    from pydantic_ai.mcp import MCPToolset

    async with MCPToolset(Client(StreamableHttpTransport(url, headers=bearer(key)))) as server:
        tools = [tool.name for tool in await server.list_tools()]

        async def call(tool, arguments):
            return document(await server.direct_call_tool(tool, arguments))

        return await use_async(name, tools, call)


async def openai_agents(name, url, key):
    from agents.mcp import MCPServerStreamableHttp, MCPUtil

    async with MCPServerStreamableHttp(params={"url": url, "headers": bearer(key)}) as server:
        listed = await server.list_tools()
        for tool in listed:  # as the model gets it: with a strict schema where it can be made strict
            MCPUtil.to_function_tool(tool, server, convert_schemas_to_strict=True)

        async def call(tool, arguments):
            return document((await server.call_tool(tool, arguments)).content)

        return await use_async(name, [tool.name for tool in listed], call)


async def mcp_use(name, url, key):
    from mcp_use import MCPClient
    from mcp_use.adapters.langchain_adapter import LangChainAdapter

    client = MCPClient.from_dict({"mcpServers": {"holdfast": {"url": url, "headers": bearer(key)}}})
    try:
        session = await client.create_session("holdfast")
        tools = [tool.name for tool in await LangChainAdapter().create_tools(client)]

        async def call(tool, arguments):
            return document((await session.call_tool(tool, arguments)).content)

        return await use_async(name, tools, call)
    finally:
        await client.close_all_sessions()


def crewai(name, url, key):
    from crewai_tools import MCPServerAdapter

    with MCPServerAdapter({"url": url, "transport": "streamable-http", "headers": bearer(key)}) as adapted:
        tools = {tool.name: tool for tool in adapted}
        return use(name, tools, lambda tool, arguments: document(tools[tool].run(**arguments)))


CLIENTS = {
    "python-sdk": python_sdk,
    "python-sdk-1": python_sdk_1,
    "fastmcp": fastmcp,
    "langchain-mcp-adapters": langchain,
    "pydantic-ai": pydantic_ai,
    "openai-agents": openai_agents,
    "mcp-use": mcp_use,
    "crewai": crewai,
}


def main(name, url, key):
    found = CLIENTS[name](name, url, key)
    sys.stdout.write(json.dumps(asyncio.run(found) if asyncio.iscoroutine(found) else found) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
