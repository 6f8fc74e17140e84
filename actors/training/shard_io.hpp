// The effects of the data shard's client, for an actor that has one.
#pragma once

#include "actors/data/data_shard.hpp"
#include "actors/dht/messages.hpp"
#include "actors/training/shard_client.hpp"

#include <cstdint>
#include <string>
#include <utility>

namespace shoal::actors {

/// `Peer` is a protocol_actor that names this class its friend. Its tick `timer` is for
/// shard_client::look_up_due(), and its answers of the DHT with `token` for found().
template <class Peer>
class shard_io final : public shard_client::io {
public:
  shard_io(Peer& of, const caf::actor& dht, std::uint32_t timer, std::uint64_t token)
      : of_(of), dht_(dht), timer_(timer), token_(token) {}

  void send(const caf::actor& to, caf::message content) override {
    of_.send(to, std::move(content));
  }
  const caf::actor& self() override { return of_.address(); }
  void watch(const caf::actor& whom) override { of_.monitor(whom); }
  void unwatch(const caf::actor& whom) override { of_.demonitor(whom); }
  void look_up_shards() override {
    of_.send(dht_, lookup{std::string{data_shard_key}, of_.address(), token_});
  }
  void look_up_shards_in(duration wait) override { of_.set_timer(wait, timer_); }
  bool failpoint(std::string_view branch) override { return of_.here().failpoint(branch); }

private:
  Peer& of_;
  const caf::actor& dht_; // the owner's: null after its end
  std::uint32_t timer_;
  std::uint64_t token_;
};

/// The samples that a trainer holds, and its side of the data shard's protocol. Samples of the step
/// under way count as computed, so that their leases are renewed.
template <class Trainer>
struct sample_stream {
  sample_stream(Trainer& of, const caf::actor& dht, const shard_client_config& config,
                std::uint32_t timer, std::uint64_t token)
      : io(of, dht, timer, token), shard(io, config, held) {}
  sample_stream(const sample_stream&) = delete;
  sample_stream& operator=(const sample_stream&) = delete;

  held_samples held;
  shard_io<Trainer> io;
  shard_client shard;
};

} // namespace shoal::actors
