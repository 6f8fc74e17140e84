// A DHT and nothing else, on the emulated network: made, filled, read, a part of it killed, and
// read again.
#pragma once

#include "kernels/base/units.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shoal::e2e {

struct dht_network {
  std::size_t nodes = 1024;
  std::size_t keys = 1024;
  std::size_t timed = 200; ///< stores and gets one after the other, for their times
  double killed = 0.2;     ///< the share of nodes that die at once
  std::uint64_t seed = 1;
  duration delay = std::chrono::milliseconds(50); ///< one way, between any two
  std::size_t paths = 0; ///< disjoint paths of a look-up; 0: as many as by default
  duration apart = std::chrono::milliseconds(10); ///< between the starts of two nodes
};

/// `_cpu`: processor seconds of this process, all nodes together, without the upkeep that goes on
/// meanwhile; `_wall` as `_cpu`, on the wall clock.
struct dht_figures {
  double create_cpu = 0, create_wall = 0, create_virtual = 0; ///< seconds until all have joined
  double store_cpu = 0, store_wall = 0,
         store_virtual = 0; ///< a store, until its last replica has confirmed it
  double get_cpu = 0, get_wall = 0,
         get_virtual = 0; ///< a get, by a node that did not read the key before
  double poll_cpu = 0, poll_wall = 0, poll_virtual = 0; ///< another get of the same key
  double upkeep_cpu = 0, upkeep_wall = 0; ///< upkeep of all nodes, for each virtual second
  double hops_mean = 0, asked_mean = 0;
  unsigned hops_max = 0;
  std::size_t killed = 0;        ///< nodes
  std::size_t lost_expected = 0; ///< keys whose replicas, as the ids have it, all died
  std::size_t answered = 0, answered_wrongly = 0;
  std::size_t answered_later = 0; ///< after one republishing
  std::uint64_t messages = 0, misbehaved = 0, bypassed = 0;
  std::size_t ready = 0; ///< nodes that joined
};

dht_figures run_dht_network(const dht_network& what);

/// A few nodes on one side of a line that becomes slow, and the others, with all the records, on
/// the other side.
struct dht_slow_line {
  std::size_t here = 4, there = 24; ///< nodes
  std::size_t keys = 20;
  duration delay = std::chrono::milliseconds(350),
           jitter{}; ///< jitter of the line, one way, once it is slow
  duration lasts = std::chrono::seconds(60);
  std::uint64_t seed = 1;
};

struct dht_slow_figures {
  std::size_t reads = 0;      ///< number of answered reads
  std::size_t unanswered = 0; ///< when the time was over
  std::size_t empty = 0;      ///< answers without the record
  double oldest = 0; ///< seconds since what a reader saw at last had been replaced by its owner
  std::uint64_t misbehaved = 0;
};

/// Each second each key gets a new value over there, and a node over here reads it.
dht_slow_figures run_dht_slow_line(const dht_slow_line& what);

/// A network whose nodes start all at once. Some of them store a record under one common key at
/// their start, and store a new version again and again.
struct young_dht_network {
  std::size_t nodes = 256, owners = 32;
  duration within = std::chrono::seconds(1); ///< all nodes start in this time
  duration renewed = std::chrono::seconds(20);
  std::vector<duration> reads; ///< ascending times since the first start
  std::size_t readers = 16;    ///< nodes that read at each time; no owners, and others each time
  std::uint64_t seed = 1;
};

struct young_dht_figures {
  std::vector<std::size_t> least; ///< the fewest owners that a reader found, for each time
  std::vector<double> mean;       ///< the mean number of owners, for each time
  std::uint64_t messages = 0, misbehaved = 0;
};

young_dht_figures run_young_dht_network(const young_dht_network& what);

} // namespace shoal::e2e
