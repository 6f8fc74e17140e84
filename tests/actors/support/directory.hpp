// A DHT of one node, for tests of protocols that only store and look up records.
#pragma once

#include "actors/dht/messages.hpp"
#include "actors/protocol_actor.hpp"

#include <map>
#include <string>
#include <utility>

namespace shoal::actors::testing {

/// Keeps records, as one DHT node that everybody can reach.
class directory final : public protocol_actor {
public:
  using protocol_actor::protocol_actor;
  caf::behavior make_behavior() override {
    return {[this](const store& m) { records_[m.key][m.entry.subkey] = m.entry; },
            [this](const withdraw& m) { records_[m.key].erase(m.subkey); },
            [this](const lookup& m) {
              found out{m.key, m.token, {}};
              for (const auto& [subkey, entry] : records_[m.key])
                if (entry.expires_utc_ns > here().utc_ns()) out.records.emplace_back(entry);
              send(m.reply_to, std::move(out));
            }};
  }
  void on_exit() override {
    records_.clear();
    protocol_actor::on_exit();
  }

private:
  std::map<std::string, std::map<std::string, record>> records_;
};

} // namespace shoal::actors::testing
