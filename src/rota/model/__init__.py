"""Defines pure values and the decisions about them. The model knows no store, no clock and no thread."""
