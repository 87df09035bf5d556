"""Text in, structure out: classification, importance, language. Knows no store."""
