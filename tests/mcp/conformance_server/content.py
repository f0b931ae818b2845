"""The resources and prompts that the conformance suite reads."""

import json

import mcp_types as types

from tests.mcp.conformance_server.fixed_tools import PNG, embedded, image, text
from tests.mcp.conformance_server.input_tools import CONTEXT, answers, elicited, needed

TEXT, BINARY = "test://static-text", "test://static-binary"
TEMPLATE = "test://template/{id}/data"
PROMPTS = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
    "test_input_required_result_prompt": (),
}


def resources():
    return [
        types.Resource(uri=uri, name=uri, description=f"{uri}, for the conformance suite.", mime_type=kind)
        for uri, kind in [(TEXT, "text/plain"), (BINARY, "image/png")]
    ]


def templates():
    description = "One URI for each id."
    return [types.ResourceTemplate(uri_template=TEMPLATE, name="template", description=description)]


def read(uri):
    """The resource's contents, or None if there is none with this URI."""
    before, _, after = TEMPLATE.partition("{id}")
    if uri == TEXT:
        content = "This is the content of the static text resource."
        found = types.TextResourceContents(uri=uri, mime_type="text/plain", text=content)
    elif uri == BINARY:
        found = types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PNG)
    elif uri.startswith(before) and uri.endswith(after):
        name = uri.removeprefix(before).removesuffix(after)
        content = json.dumps({"id": name, "templateTest": True, "data": f"Data for ID: {name}"})
        found = types.TextResourceContents(uri=uri, mime_type="application/json", text=content)
    else:
        return None
    return types.ReadResourceResult(contents=[found])


def prompts():
    return [
        types.Prompt(
            name=name,
            description=f"{name}, for the conformance suite.",
            arguments=[types.PromptArgument(name=blank, description=blank, required=True) for blank in arguments],
        )
        for name, arguments in PROMPTS.items()
    ]


def prompt(params):
    """The prompt, or None if there is none with this name."""
    arguments = params.arguments or {}
    contents = {
        "test_simple_prompt": lambda: [text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments": lambda: [
            text(f"Prompt with arguments: arg1='{arguments['arg1']}', arg2='{arguments['arg2']}'")
        ],
        "test_prompt_with_embedded_resource": lambda: [
            embedded(arguments["resourceUri"], "Embedded resource content for testing."),
            text("Please process the embedded resource above."),
        ],
        "test_prompt_with_image": lambda: [image(), text("Please analyze the image above.")],
        "test_input_required_result_prompt": lambda: [text("This prompt knows its context.")],
    }
    if params.name not in contents:
        return None
    if params.name == "test_input_required_result_prompt" and not answers(params, "user_context"):
        return needed(user_context=elicited("What context should the prompt use?", CONTEXT))
    messages = [types.PromptMessage(role="user", content=content) for content in contents[params.name]()]
    return types.GetPromptResult(messages=messages)
