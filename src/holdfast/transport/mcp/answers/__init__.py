"""Parts of a tool's answer: advice with tools instead of routes, names of arguments, summaries."""
