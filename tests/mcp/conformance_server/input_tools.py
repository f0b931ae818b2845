"""Tools that need input from the client. In the old protocol they send it a request; in the new one they return one.

Holdfast itself never asks its clients for anything; these show that its endpoint supports it.
"""

import json

import mcp_types as types
from mcp.shared.exceptions import MCPError

from tests.mcp.conformance_server.fixed_tools import FixedTool, text, tool_result

NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
COLOR = {"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]}
OK = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
CONTEXT = {"type": "object", "properties": {"context": {"type": "string"}}, "required": ["context"]}
USER = {
    "type": "object",
    "properties": {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    },
    "required": ["username", "email"],
}
DEFAULTS = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    },
}
_OPTIONS = ["option1", "option2", "option3"]
_TITLED = [{"const": f"value{number}", "title": f"{word} Option"} for number, word in enumerate(("First", "Second"), 1)]
ENUMS = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": _OPTIONS},
        "titledSingle": {"type": "string", "oneOf": _TITLED},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": _OPTIONS}},
        "titledMulti": {"type": "array", "items": {"anyOf": _TITLED}},
    },
}


def one_text(name):
    return {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}


# -- the old protocol -------------------------------------------------------------------------------------------------


async def _sample(context, params):
    message = types.SamplingMessage(role="user", content=text(params.arguments["prompt"]))
    answer = await context.session.create_message([message], max_tokens=100, related_request_id=context.request_id)
    return tool_result(text(f"LLM response: {answer.content.text}"))


def _eliciting(schema, message=None):
    async def handle(context, params):
        question = message or params.arguments["message"]
        answer = await context.session.elicit(question, schema, related_request_id=context.request_id)
        return tool_result(text(f"Elicitation completed: action={answer.action}, content={json.dumps(answer.content)}"))

    return handle


# -- the new protocol -------------------------------------------------------------------------------------------------


def elicited(message, schema):
    params = types.ElicitRequestFormParams(message=message, requested_schema=schema)
    return types.ElicitRequest(params=params)


def sampled(prompt, most=100):
    message = types.SamplingMessage(role="user", content=text(prompt))
    return types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[message], max_tokens=most))


def needed(state=None, **requests):
    return types.InputRequiredResult(input_requests=requests, request_state=state)


def answers(params, *keys):
    """The answers of the client to these requests, or nothing if one of them is missing or empty."""
    responses = params.input_responses or {}
    found = [
        responses[key] for key in keys if getattr(responses.get(key), "content", True) is not None and key in responses
    ]
    return found if len(found) == len(keys) else []


def _needing_input(state=None, **requests):
    """A tool that returns these requests until the client has answered all of them."""

    async def handle(_, params):
        found = answers(params, *requests)
        if not found or params.request_state != state:
            return needed(state, **requests)
        state_text = "state-ok, " if state else ""
        return tool_result(
            text(f"{state_text}done with {json.dumps([answer.model_dump(mode='json') for answer in found])}")
        )

    return FixedTool(handle)


async def _two_rounds(_, params):
    if params.request_state == "second" and answers(params, "step2"):
        return tool_result(text("done"))
    if params.request_state == "first" and answers(params, "step1"):
        return needed("second", step2=elicited("Step 2: What is your favorite color?", COLOR))
    return needed("first", step1=elicited("Step 1: What is your name?", NAME))


async def _only_what_the_client_can(context, _):
    able = context.session.client_capabilities or types.ClientCapabilities()
    possible = {
        "elicitation": elicited("What is your name?", NAME),
        "sampling": sampled("Say hello"),
        "roots": types.ListRootsRequest(),
    }
    return needed(**{name: request for name, request in possible.items() if getattr(able, name) is not None})


async def _needs_sampling(context, _):
    able = context.session.client_capabilities
    if able is None or able.sampling is None:
        missing = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "this tool needs sampling", missing)
    return tool_result(text("done"))


ASK_NAME = elicited("What is your name?", NAME)
ROUND = "test_input_required_result_"
INPUT_TOOLS = {
    "test_sampling": FixedTool(_sample, one_text("prompt")),
    "test_elicitation": FixedTool(_eliciting(USER), one_text("message")),
    "test_elicitation_sep1034_defaults": FixedTool(_eliciting(DEFAULTS, "Please look at the defaults")),
    "test_elicitation_sep1330_enums": FixedTool(_eliciting(ENUMS, "Please choose")),
    f"{ROUND}elicitation": _needing_input(user_name=ASK_NAME),
    f"{ROUND}sampling": _needing_input(capital_question=sampled("What is the capital of France?")),
    f"{ROUND}list_roots": _needing_input(client_roots=types.ListRootsRequest()),
    f"{ROUND}request_state": _needing_input("confirming", confirm=elicited("Please confirm", OK)),
    f"{ROUND}tampered_state": _needing_input("sealed", confirm=elicited("Please confirm", OK)),
    f"{ROUND}multiple_inputs": _needing_input(
        "all", user_name=ASK_NAME, greeting=sampled("Generate a greeting", 50), client_roots=types.ListRootsRequest()
    ),
    f"{ROUND}multi_round": FixedTool(_two_rounds),
    f"{ROUND}capabilities": FixedTool(_only_what_the_client_can),
    "test_missing_capability": FixedTool(_needs_sampling),
    "test_streaming_elicitation": _needing_input(user_name=ASK_NAME),
}
