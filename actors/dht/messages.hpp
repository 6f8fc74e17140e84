// Messages of the distributed hash table: between an actor and the DHT node of its own host, and
// between DHT nodes. In a message between nodes, `client` says that others cannot dial the sender,
// so it must not enter a routing table.
#pragma once

#include "actors/dht/node_id.hpp"
#include "actors/ids.hpp"
#include "actors/message_list.hpp"
#include "actors/payload_inspect.hpp"
#include "kernels/base/payload.hpp"
#include "kernels/base/shared.hpp"

#include <caf/actor.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace shoal::actors {

// Messages between an actor and the DHT node of its own host.

/// A value under (key, subkey) until `expires_utc_ns`. A record replaces earlier ones of its owner;
/// other owners may have records of their own under the same sub-key.
struct record {
  std::string subkey;
  caf::actor address; ///< the subject, an actor of the owner's host; may be empty
  payload value;
  std::int64_t expires_utc_ns = 0;
  key256 owner{}; ///< the owner's public key; the node sets it in a `store`
  SHOAL_MESSAGE(record, x.subkey, x.address, x.value, x.expires_utc_ns, x.owner)
};

struct store {
  std::string key;
  record entry;
  SHOAL_MESSAGE(store, x.key, x.entry)
};

/// Removes a sub-key before it expires.
struct withdraw {
  std::string key;
  std::string subkey;
  SHOAL_MESSAGE(withdraw, x.key, x.subkey)
};

/// The node answers with `found` and the same token; it leaves out expired records.
struct lookup {
  std::string key;
  caf::actor reply_to;
  std::uint64_t token = 0;
  SHOAL_MESSAGE(lookup, x.key, x.reply_to, x.token)
};

struct found {
  std::string key;
  std::uint64_t token = 0;
  std::vector<shared<record>> records; ///< ascending by subkey, then by owner
  SHOAL_MESSAGE(found, x.key, x.token, x.records)
};

/// Names a node of another host. The receiver queries that node unless it knows it.
struct introduced {
  caf::actor node;
  SHOAL_MESSAGE(introduced, x.node)
};

/// The link to a node's host has ended. The receiver asks the node for a sign of life, so that it
/// does not name a dead node to others.
struct link_lost {
  caf::actor node;
  SHOAL_MESSAGE(link_lost, x.node)
};

/// Says whether other hosts can dial this one. The node sends no answer.
struct serve {
  std::uint8_t others_reach_us = 0;
  SHOAL_MESSAGE(serve, x.others_reach_us)
};

// Messages between DHT nodes.

/// A node's id and its address. The id follows from the address (node_id::of_host).
struct contact {
  node_id id;
  caf::actor address;

  /// One actor of one host. A failure of an address says nothing about other actors of that host.
  using place = std::pair<node_id, caf::actor_id>;
  place where() const { return {id, address ? address.id() : 0}; }
  SHOAL_MESSAGE(contact, x.id, x.address)
};

/// A record as nodes send and keep it: actors/dht/signed_record.hpp.
struct signed_record {
  record entry;
  std::uint64_t version = 0;  ///< ascends with each record that the owner stores
  std::uint8_t withdrawn = 0; ///< the sub-key is empty until the record expires
  key256 signature_r, signature_s;
  SHOAL_MESSAGE(signed_record, x.entry, x.version, x.withdrawn, x.signature_r, x.signature_s)
};

/// Proves that the swarm admits the owner of a record. It goes with the first record of that owner
/// that the receiver gets from the sender. In a world without certificates none are sent.
struct owner_certificate {
  key256 owner;
  std::string certificate;
  SHOAL_MESSAGE(owner_certificate, x.owner, x.certificate)
};

/// Asks for the nodes nearest to `target` that the receiver knows.
struct nodes_query {
  contact from;
  std::uint8_t client = 0;
  std::uint64_t token = 0;
  node_id target;
  SHOAL_MESSAGE(nodes_query, x.from, x.client, x.token, x.target)
};

/// Asks for the changes under `key` since sequence number `after`; with `nodes`, also for nodes
/// nearer to the key.
struct records_query {
  contact from;
  std::uint8_t client = 0;
  std::uint64_t token = 0;
  std::string key;
  std::uint64_t after = 0;
  std::uint8_t nodes = 0;
  SHOAL_MESSAGE(records_query, x.from, x.client, x.token, x.key, x.after, x.nodes)
};

/// Answers both queries. `sequence` is the `after` of the next query, or 0 if there are no records
/// under the key. `utc_ns` is the sender's clock.
struct query_answer {
  contact from;
  std::uint8_t client = 0;
  std::uint64_t token = 0;
  std::int64_t utc_ns = 0;
  std::vector<contact> nearer;
  std::vector<shared<signed_record>> records;
  std::uint64_t sequence = 0;
  std::uint8_t more = 0; ///< the answer was cut to the size limit; the asker asks again at once
  /// The sender knows enough nodes nearer to the key, so it is no replica.
  std::uint8_t others_nearer = 0;
  std::vector<owner_certificate> certificates;
  SHOAL_MESSAGE(query_answer, x.from, x.client, x.token, x.utc_ns, x.nearer, x.records, x.sequence,
                x.more, x.others_nearer, x.certificates)
};

/// Asks the receiver to keep these records.
struct record_put {
  contact from;
  std::uint8_t client = 0;
  std::uint64_t token = 0;
  std::string key;
  std::vector<shared<signed_record>> records;
  std::vector<owner_certificate> certificates;
  SHOAL_MESSAGE(record_put, x.from, x.client, x.token, x.key, x.records, x.certificates)
};

struct put_receipt {
  std::uint8_t client = 0;
  std::uint64_t token = 0;
  std::int64_t utc_ns = 0;
  std::uint8_t others_nearer = 0; ///< as in query_answer
  SHOAL_MESSAGE(put_receipt, x.client, x.token, x.utc_ns, x.others_nearer)
};

using dht_messages = message_list<
    row<record, traffic::control, scope::remote>, row<store, traffic::control, scope::local>,
    row<withdraw, traffic::control, scope::local>, row<lookup, traffic::control, scope::local>,
    row<found, traffic::control, scope::local>, row<serve, traffic::control, scope::local>,
    row<introduced, traffic::control, scope::local>, row<link_lost, traffic::control, scope::local>,
    row<contact, traffic::control, scope::remote>,
    row<signed_record, traffic::control, scope::remote>,
    row<owner_certificate, traffic::control, scope::remote>,
    row<nodes_query, traffic::control, scope::remote>,
    row<records_query, traffic::control, scope::remote>,
    row<query_answer, traffic::control, scope::remote>,
    row<record_put, traffic::control, scope::remote>,
    row<put_receipt, traffic::control, scope::remote>>;

} // namespace shoal::actors
