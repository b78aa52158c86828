"""minipaged: learn how an LLM serving engine works by building one."""
