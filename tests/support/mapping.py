"""The mapping of producer ids a second time, as an oracle for tests of the program."""

import base64
import struct


def region_of(cluster_id):
    msb, lsb = struct.unpack(">QQ", base64.urlsafe_b64decode(cluster_id + "=="))
    return (msb ^ lsb) & 0xFFFFFFFF


def mapped(region, producer_id):
    """F(region, producer id); what is negative was mapped before, or is no producer at all, and stays."""
    if producer_id < 0:
        return producer_id
    return (1 << 63 | region << 31 | producer_id & 0x7FFFFFFF) - (1 << 64)
