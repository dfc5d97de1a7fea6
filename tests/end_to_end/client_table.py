"""The table of what test_clients has run, as Markdown."""

import datetime

_APIS = (
    *("API_VERSIONS", "METADATA", "PRODUCE", "FETCH", "INIT_PRODUCER_ID", "ADD_PARTITIONS_TO_TXN"),
    *("ADD_OFFSETS_TO_TXN", "TXN_OFFSET_COMMIT", "END_TXN", "FIND_COORDINATOR"),
)
_HEADINGS = (
    *("ApiVersions", "Metadata", "Produce", "Fetch", "InitProducerId", "AddPartitionsToTxn"),
    *("AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn", "FindCoordinator"),
)


def _row(cells):
    return "| " + " | ".join(cells) + " |\n"


def _numbers(versions):
    return ", ".join(map(str, sorted(versions))) if versions else "-"


class Table:
    def __init__(self, columns):
        self._columns = columns
        self._results = {}  # (client's title, column): result
        self._versions = {}  # the same: {API: versions}
        self._reasons = {}  # client's title: why it was skipped

    def note(self, client, column, result, reason=None, versions=None):
        self._results[client.title, column] = result
        if reason:
            self._reasons[client.title] = reason
        if versions:
            self._versions[client.title, column] = versions

    def text(self, clients):
        titles = [client.title for client in clients]
        newest = self._columns[-1]
        text = (
            "# Clients through mirrorpid\n\n"
            f"Written by the tests on {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}. Each client did the job "
            "of README.md twice, directly and through\nmirrorpid. \"same\": what it saw, what it left in the log and "
            "the versions of what it sent did not differ.\n\n"
        )
        text += _row(["client", *(f"Kafka {column}" for column in self._columns)])
        text += _row(["---"] * (1 + len(self._columns)))
        for title in titles:
            text += _row([title, *(self._results.get((title, column), "-") for column in self._columns)])
        text += f"\nThe versions of their requests, as Kafka {newest} has logged them, the same on both ways:\n\n"
        text += _row(["client", *_HEADINGS])
        text += _row(["---"] * (1 + len(_HEADINGS)))
        for title in titles:
            versions = self._versions.get((title, newest))
            if versions:
                text += _row([title, *(_numbers(versions.get(api)) for api in _APIS)])
        if self._reasons:
            text += "\nSkipped:\n\n" + "".join(f"- {title}: {why}\n" for title, why in self._reasons.items())
        return text
