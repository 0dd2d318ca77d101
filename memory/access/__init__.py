"""Who may call, and how much.

keys        API keys: whose data a key opens, and what for
anonymous   serving without keys: this machine alone
owners      whose data a caller may see
budgets     the tokens a day that an owner's model calls may take
"""
