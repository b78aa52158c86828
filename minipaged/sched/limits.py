"""How many tokens a request may write, decided once, when it arrives."""

from __future__ import annotations


def max_output_tokens(
    num_prompt_tokens: int, max_tokens: int, max_model_len: int, num_slots: int
) -> int:
    """The tightest of max_tokens, max_model_len and the pool's slots; at least 1.

    The last output is never stored, so a prompt of P tokens with k outputs needs P + k - 1 slots:
    a prompt that fills the pool exactly still yields one output. ValueError if the prompt is
    empty or can never fit; the message states need and capacity.
    """
    if num_prompt_tokens == 0:
        raise ValueError("the prompt is empty: give at least one token")
    if num_prompt_tokens >= max_model_len:
        excess = num_prompt_tokens - max_model_len + 1
        raise ValueError(
            f"the prompt needs {num_prompt_tokens} tokens and an output, but max_model_len is "
            f"{max_model_len}: shorten it by {excess}, or raise max_model_len if the model allows"
        )
    if num_prompt_tokens > num_slots:
        raise ValueError(
            f"the prompt needs {num_prompt_tokens} slots, but the whole pool has {num_slots}: "
            f"shorten it or raise num_blocks"
        )
    return min(max_tokens, max_model_len - num_prompt_tokens, num_slots + 1 - num_prompt_tokens)
