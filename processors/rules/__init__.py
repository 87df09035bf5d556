"""Classification without a language model: weighted Thai and English phrases, and what makes a message important."""

from processors.rules.engine import Rules, Verdict, default_rules

__all__ = ["Rules", "Verdict", "default_rules"]
