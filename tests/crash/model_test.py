#!/usr/bin/env python3
"""The model finds what it is there to find."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from model import Model, Violation  # noqa: E402


class ModelTest(unittest.TestCase):
    def setUp(self):
        self.model = Model()

    def put(self, state, answered=True, key="k"):
        operation = self.model.begin(key, state)
        (self.model.acknowledge if answered else self.model.unknown)(operation)

    def test_lost_write(self):
        self.put("a")
        with self.assertRaisesRegex(Violation, "is gone"):
            self.model.observe("k", None)

    def test_old_state_after_an_acknowledged_overwrite(self):
        self.put("a")
        self.put("b")
        with self.assertRaisesRegex(Violation, "neither"):
            self.model.observe("k", "a")

    def test_deleted_object_is_back(self):
        self.put("a")
        self.put(None)
        with self.assertRaisesRegex(Violation, "is back"):
            self.model.observe("k", "a")

    def test_torn_object(self):
        self.put("a")
        self.put("b", answered=False)
        with self.assertRaisesRegex(Violation, "neither"):
            self.model.observe("k", "half of b")

    def test_unanswered_may_be_either_but_not_both(self):
        for seen in ("a", "b"):
            self.put("a")
            self.put("b", answered=False)
            self.model.observe("k", seen)
            self.model.observe("k", seen)
            with self.assertRaises(Violation):
                self.model.observe("k", "a" if seen == "b" else "b")

    def test_unanswered_first_write(self):
        self.put("a", answered=False)
        self.model.observe("k", None)
        with self.assertRaises(Violation):
            self.model.observe("k", "a")

    def test_refused_write_changes_nothing(self):
        self.put("a")
        before = self.model.possible("k")
        operation = self.model.begin("k", "b")
        self.model.refuse(operation, before)
        with self.assertRaises(Violation):
            self.model.observe("k", "b")
        self.model.observe("k", "a")

    def test_unknown_key(self):
        with self.assertRaisesRegex(Violation, "is back"):
            self.model.observe("never written", "a")


if __name__ == "__main__":
    unittest.main(verbosity=2)
