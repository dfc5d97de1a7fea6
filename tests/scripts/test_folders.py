"""The direction of dependencies: proxy joins everything, codec, mapping and config are leaves."""

import pathlib
import re
import unittest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]', re.MULTILINE)
LEAVES = ("codec", "mapping", "config")


def includes(folder):
    for path in sorted((REPOSITORY / folder).rglob("*.[ch]pp")):
        for included in INCLUDE.findall(path.read_text()):
            yield path.relative_to(REPOSITORY), included


class Folders(unittest.TestCase):
    def test_a_leaf_includes_no_other_folder(self):
        for leaf in LEAVES:
            others = tuple(f"{folder}/" for folder in (*LEAVES, "proxy", "tests") if folder != leaf)
            for path, included in includes(leaf):
                with self.subTest(path=str(path), include=included):
                    self.assertFalse(included.startswith(others))

    def test_a_leaf_knows_nothing_of_sockets(self):
        for leaf in LEAVES:
            for path, included in includes(leaf):
                with self.subTest(path=str(path), include=included):
                    self.assertFalse(included.startswith(("boost/asio", "boost/beast", "sys/socket", "openssl/")))

    def test_the_program_takes_of_the_tests_only_what_the_demo_shows(self):
        for path, included in includes("proxy"):
            if included.startswith("tests/"):
                with self.subTest(include=included):
                    self.assertEqual("proxy/demo.cpp", str(path))

    def test_every_folder_was_looked_at(self):
        for folder in (*LEAVES, "proxy"):
            self.assertTrue(any(True for _ in includes(folder)), folder)
