"""The resources and prompts that the conformance suite reads."""

import json

import mcp_types as types

from tests.mcp.stage.asking import CONTEXT, answers, elicited, needed
from tests.mcp.stage.props import PNG, embedded, image, text

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
    words = "One address for each id."
    return [types.ResourceTemplate(uri_template=TEMPLATE, name="template", description=words)]


def read(uri):
    """The resource's contents, or None if the stage has none of this address."""
    before, _, after = TEMPLATE.partition("{id}")
    if uri == TEXT:
        words = "This is the content of the static text resource."
        found = types.TextResourceContents(uri=uri, mime_type="text/plain", text=words)
    elif uri == BINARY:
        found = types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PNG)
    elif uri.startswith(before) and uri.endswith(after):
        name = uri.removeprefix(before).removesuffix(after)
        words = json.dumps({"id": name, "templateTest": True, "data": f"Data for ID: {name}"})
        found = types.TextResourceContents(uri=uri, mime_type="application/json", text=words)
    else:
        return None
    return types.ReadResourceResult(contents=[found])


def prompts():
    return [
        types.Prompt(
            name=name,
            description=f"{name}, for the conformance suite.",
            arguments=[types.PromptArgument(name=blank, description=blank, required=True) for blank in blanks],
        )
        for name, blanks in PROMPTS.items()
    ]


def prompt(params):
    """The prompt, or None if the stage has none of this name."""
    given = params.arguments or {}
    contents = {
        "test_simple_prompt": lambda: [text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments": lambda: [
            text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'")
        ],
        "test_prompt_with_embedded_resource": lambda: [
            embedded(given["resourceUri"], "Embedded resource content for testing."),
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
