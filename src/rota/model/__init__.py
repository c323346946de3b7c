"""The model: pure values and the decisions about them. It knows no store, no clock and no thread."""
