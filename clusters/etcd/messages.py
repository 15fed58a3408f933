"""The messages of etcd's gRPC interface that are used here, as a table; and the classes made from it.

Numbers and names are those of etcd's rpc.proto, kv.proto and v3lock.proto. The file is declared with the syntax of
proto2, in which a field that is set to zero is sent: a comparison with revision 0 means that the key does not exist.
"""

from collections.abc import Mapping
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_FIELD: Final = descriptor_pb2.FieldDescriptorProto
_SCALARS: Final = {
    "bool": _FIELD.TYPE_BOOL,
    "bytes": _FIELD.TYPE_BYTES,
    "int64": _FIELD.TYPE_INT64,
    "string": _FIELD.TYPE_STRING,
    "uint32": _FIELD.TYPE_UINT32,
    "uint64": _FIELD.TYPE_UINT64,
}
_PACKAGE: Final = "seamark.etcd"

# Each field with its number and type; "*" marks a repeated one. Enumerations are int64: they are alike on the wire.
_TABLE: Final[Mapping[str, str]] = {
    "ResponseHeader": "cluster_id 1 uint64, member_id 2 uint64, revision 3 int64, raft_term 4 uint64",
    "KeyValue": "key 1 bytes, create_revision 2 int64, mod_revision 3 int64, version 4 int64, value 5 bytes",
    "Event": "type 1 int64, kv 2 KeyValue",
    "RangeRequest": "key 1 bytes, range_end 2 bytes, limit 3 int64, revision 4 int64, serializable 7 bool",
    "RangeResponse": "header 1 ResponseHeader, kvs 2 *KeyValue, count 4 int64",
    "PutRequest": "key 1 bytes, value 2 bytes, lease 3 int64",
    "PutResponse": "header 1 ResponseHeader",
    "DeleteRangeRequest": "key 1 bytes, range_end 2 bytes",
    "DeleteRangeResponse": "header 1 ResponseHeader, deleted 2 int64",
    "Compare": "result 1 int64, target 2 int64, key 3 bytes, create_revision 5 int64, mod_revision 6 int64, "
    "value 7 bytes",
    "RequestOp": "request_range 1 RangeRequest, request_put 2 PutRequest, request_delete_range 3 DeleteRangeRequest",
    "ResponseOp": "response_range 1 RangeResponse, response_put 2 PutResponse",
    "TxnRequest": "compare 1 *Compare, success 2 *RequestOp, failure 3 *RequestOp",
    "TxnResponse": "header 1 ResponseHeader, succeeded 2 bool, responses 3 *ResponseOp",
    "CompactionRequest": "revision 1 int64, physical 2 bool",
    "CompactionResponse": "header 1 ResponseHeader",
    "WatchCreateRequest": "key 1 bytes, range_end 2 bytes, start_revision 3 int64, progress_notify 4 bool",
    "WatchProgressRequest": "",
    "WatchRequest": "create_request 1 WatchCreateRequest, progress_request 3 WatchProgressRequest",
    "WatchResponse": "header 1 ResponseHeader, watch_id 2 int64, created 3 bool, canceled 4 bool, "
    "compact_revision 5 int64, cancel_reason 6 string, events 11 *Event",
    "LeaseGrantRequest": "TTL 1 int64, ID 2 int64",
    "LeaseGrantResponse": "header 1 ResponseHeader, ID 2 int64, TTL 3 int64",
    "LeaseRevokeRequest": "ID 1 int64",
    "LeaseRevokeResponse": "header 1 ResponseHeader",
    "LockRequest": "name 1 bytes, lease 2 int64",
    "LockResponse": "header 1 ResponseHeader, key 2 bytes",
    "UnlockRequest": "key 1 bytes",
    "UnlockResponse": "header 1 ResponseHeader",
    "StatusRequest": "",
    "StatusResponse": "header 1 ResponseHeader, version 2 string, dbSize 3 int64, leader 4 uint64, raftIndex 5 uint64",
    "Member": "ID 1 uint64, name 2 string, peerURLs 3 *string, clientURLs 4 *string",
    "MemberListRequest": "linearizable 1 bool",
    "MemberListResponse": "header 1 ResponseHeader, members 2 *Member",
    "MemberAddRequest": "peerURLs 1 *string",
    "MemberAddResponse": "header 1 ResponseHeader, member 2 Member, members 3 *Member",
    "MemberRemoveRequest": "ID 1 uint64",
    "MemberRemoveResponse": "header 1 ResponseHeader, members 2 *Member",
    "HashKVRequest": "revision 1 int64",
    "HashKVResponse": "header 1 ResponseHeader, hash 2 uint32, compact_revision 3 int64",
}
# The method's path, and the messages that go and come.
CALLS: Final[Mapping[str, tuple[str, str, str]]] = {
    "range": ("/etcdserverpb.KV/Range", "RangeRequest", "RangeResponse"),
    "put": ("/etcdserverpb.KV/Put", "PutRequest", "PutResponse"),
    "delete": ("/etcdserverpb.KV/DeleteRange", "DeleteRangeRequest", "DeleteRangeResponse"),
    "txn": ("/etcdserverpb.KV/Txn", "TxnRequest", "TxnResponse"),
    "compact": ("/etcdserverpb.KV/Compact", "CompactionRequest", "CompactionResponse"),
    "grant": ("/etcdserverpb.Lease/LeaseGrant", "LeaseGrantRequest", "LeaseGrantResponse"),
    "revoke": ("/etcdserverpb.Lease/LeaseRevoke", "LeaseRevokeRequest", "LeaseRevokeResponse"),
    "lock": ("/v3lockpb.Lock/Lock", "LockRequest", "LockResponse"),
    "unlock": ("/v3lockpb.Lock/Unlock", "UnlockRequest", "UnlockResponse"),
    "status": ("/etcdserverpb.Maintenance/Status", "StatusRequest", "StatusResponse"),
    "member_list": ("/etcdserverpb.Cluster/MemberList", "MemberListRequest", "MemberListResponse"),
    "member_add": ("/etcdserverpb.Cluster/MemberAdd", "MemberAddRequest", "MemberAddResponse"),
    "member_remove": ("/etcdserverpb.Cluster/MemberRemove", "MemberRemoveRequest", "MemberRemoveResponse"),
    "hash_kv": ("/etcdserverpb.Maintenance/HashKV", "HashKVRequest", "HashKVResponse"),
}
WATCH: Final = ("/etcdserverpb.Watch/Watch", "WatchRequest", "WatchResponse")


def _declared() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name="seamark/etcd.proto", package=_PACKAGE, syntax="proto2")
    for name, fields in _TABLE.items():
        message = file.message_type.add(name=name)
        for text in filter(None, fields.split(", ")):
            field, number, kind = text.split()
            is_many, kind = kind.startswith("*"), kind.removeprefix("*")
            label = _FIELD.LABEL_REPEATED if is_many else _FIELD.LABEL_OPTIONAL
            added = message.field.add(name=field, number=int(number), label=label)
            if kind in _SCALARS:
                added.type = _SCALARS[kind]
            else:
                added.type, added.type_name = _FIELD.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
    return file


def _classes() -> Mapping[str, Any]:
    pool = descriptor_pool.DescriptorPool()
    pool.Add(_declared())
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in _TABLE}


MESSAGES: Final = _classes()


def message(name: str, /, **fields: object) -> Any:
    """A message of that name with those fields."""
    return MESSAGES[name](**fields)
