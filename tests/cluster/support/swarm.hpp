// A swarm of processes on 127.0.0.1: a scenario, a moderator with the keys that it gave out, and
// the nodes.
#pragma once

#include "netem/wire/frames.hpp"
#include "netem/wire/moderator.hpp"
#include "tests/cluster/support/node_process.hpp"
#include "tests/e2e/support/program.hpp"

#include <nlohmann/json.hpp>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace shoal::cluster {

/// What it takes to be somebody: a certificate, and the key that belongs to it.
struct identity {
  std::string certificate_pem, key_pem;
};

class swarm {
public:
  /// A scenario without file name: its text.
  explicit swarm(const std::string& scenario, bool tls = true);

  const e2e::scratch_folder& folder() const noexcept { return folder_; }
  std::string scenario_file() const { return (folder_ / "s.yaml").string(); }
  /// The time at which certificates are issued: now, by this machine's clock.
  static std::int64_t utc_ns();

  // -- keys -----------------------------------------------------------------
  const netem::wire::moderator& moderator() const noexcept { return moderator_; }
  identity admit(const std::string& name, bool operates = false) const;
  /// A folder as `shoal keys admit` makes it, of a node that was admitted when this was called
  /// first.
  std::string keys_of(const std::string& name, bool operates = false);
  /// Takes the certificate back, and brings the new list to all folders of keys.
  void revoke(const identity& whose);
  /// Takes the certificate of node `whose` back, and brings the new list to the folder of node
  /// `where` alone.
  void revoke_at(const std::string& where, const std::string& whose);
  /// The newest list, as PEM.
  const std::string& list() const noexcept { return revoked_.pem(); }

  // -- nodes ----------------------------------------------------------------
  /// Whom nodes join that are started from now on, themselves left out. Without: the first that was
  /// started.
  void join_via(std::vector<std::string> names) { joins_ = std::move(names); }
  /// Starts a node. `more`: arguments, added.
  node_process& start(const std::string& name, const std::vector<std::string>& more = {},
                      const std::vector<std::string>& environment = {});
  /// Starts a node that has ended as it was started before; it writes another run directory.
  /// Requires: it was started.
  node_process& restart(const std::string& name);
  /// As start(), but the node is not one of the swarm: `label` is what its files are called, its
  /// other arguments are `arguments`.
  std::unique_ptr<node_process> start_other(const std::string& label,
                                            std::vector<std::string> arguments,
                                            const std::vector<std::string>& environment = {});
  node_process& node(const std::string& name) { return *nodes_.at(name); }
  std::uint16_t port_of(const std::string& name);
  std::string address_of(const std::string& name) {
    return "127.0.0.1:" + std::to_string(port_of(name));
  }
  /// Where it writes since it was started last.
  std::string out_of(const std::string& name) const;
  /// What a host of that name says first, on a link with that token.
  netem::wire::hello hello_of(const std::string& name, std::uint64_t link) const;
  /// What identifies a node to others: --keys DIR, or --insecure.
  std::vector<std::string> credentials_of(const std::string& name);

  /// The node's summary.json, once it has ended.
  nlohmann::json summary(const std::string& name) const;
  /// What it serves to Prometheus. Waits for the address if it was started just now.
  series metrics(const std::string& name);
  /// All nodes have ended well: every epoch, no invariant violated.
  void check_trained(std::uint64_t epochs);

private:
  /// The list with these certificates, too.
  void take_back(const std::string& certificate_pem);
  void bring_list_to(const std::string& keys) const;

  e2e::scratch_folder folder_;
  const bool tls_;
  netem::wire::moderator moderator_;
  netem::wire::revocation_list revoked_;
  std::map<std::string, std::string> keys_; // folders, by name
  std::map<std::string, std::uint16_t> ports_;
  struct start_of {
    std::vector<std::string> more, environment;
    int lives = 0;
  };
  std::vector<std::string> joins_;
  std::map<std::string, start_of> starts_;
  std::map<std::string, std::unique_ptr<node_process>> nodes_;
};

} // namespace shoal::cluster
