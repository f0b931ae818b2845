"""`agent_contract`: what an agent should do next, as pure functions of the outcome."""
