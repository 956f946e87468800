"""What may stand under each key. A state is None (absent) or the digest of a whole body.

Each key belongs to one client, which has one operation on it under way at a time:

    acknowledged        exactly the new state
    refused (4xx)       exactly what was there before
    no answer, or 5xx   the old state or the new one, whole, and from the first look on always the same
"""


class Violation(AssertionError):
    pass


class Model:
    def __init__(self):
        self._possible = {}  # key -> set of states; an unknown key is absent
        self._history = {}   # key -> the last few events, for the report

    def keys(self):
        return sorted(self._possible)

    def possible(self, key):
        return self._possible.get(key, {None})

    def certain(self, key):
        """The state when there is only one, else Violation's cousin: KeyError."""
        (state,) = self.possible(key)
        return state

    def is_certain(self, key):
        return len(self.possible(key)) == 1

    def begin(self, key, state):
        self._possible[key] = self.possible(key) | {state}
        self._note(key, f"begin {state}")
        return key, state

    def acknowledge(self, operation):
        key, state = operation
        self._possible[key] = {state}
        self._note(key, f"acknowledged {state}")

    def refuse(self, operation, before):
        key, _ = operation
        self._possible[key] = set(before)
        self._note(key, "refused")

    def unknown(self, operation):
        self._note(operation[0], "no answer")

    def observe(self, key, state):
        """What a read returned. From now on it must stay."""
        possible = self.possible(key)
        if state not in possible:
            kind = ("an acknowledged object is gone" if state is None else
                    "a deleted object is back" if possible == {None} else "neither the old object nor the new one")
            raise Violation(f"{key}: {kind}: saw {state}, possible were {possible}; history: {self._history.get(key, [])}")
        self._possible[key] = {state}
        self._note(key, f"observed {state}")

    def _note(self, key, event):
        events = self._history.setdefault(key, [])
        events.append(event)
        del events[:-12]
