"""What the model may do: tools on one leased phone, each with its arguments, its outcome, and the policy around it."""
