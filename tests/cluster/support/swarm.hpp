// A swarm of processes on 127.0.0.1: a scenario, a moderator with the keys that it issued, and the
// nodes.
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

/// A node's identity: a certificate, and the key that belongs to it.
struct identity {
  std::string certificate_pem, key_pem;
};

class swarm {
public:
  /// `scenario` is the text of a scenario.
  explicit swarm(const std::string& scenario, bool tls = true);

  const e2e::scratch_folder& folder() const noexcept { return folder_; }
  std::string scenario_file() const { return (folder_ / "s.yaml").string(); }
  /// The time at which certificates are issued: this machine's time now.
  static std::int64_t utc_ns();

  // -- keys -----------------------------------------------------------------
  const netem::wire::moderator& moderator() const noexcept { return moderator_; }
  identity admit(const std::string& name, bool operates = false) const;
  /// The folder of a node's keys, as `shoal keys admit` makes it. The first call admits the node.
  std::string keys_of(const std::string& name, bool operates = false);
  /// Revokes the certificate, and writes the new list to all folders of keys.
  void revoke(const identity& whose);
  /// Revokes the certificate of node `whose`, and writes the new list to the folder of node `where`
  /// only.
  void revoke_at(const std::string& where, const std::string& whose);
  /// The newest list, as PEM.
  const std::string& revocation_list_pem() const noexcept { return revoked_.pem(); }

  // -- nodes ----------------------------------------------------------------
  /// Sets the nodes that later nodes join, except themselves. By default this is the first node
  /// that was started.
  void join_via(std::vector<std::string> names) { joins_ = std::move(names); }
  /// Starts a node. `more` adds arguments.
  node_process& start(const std::string& name, const std::vector<std::string>& more = {},
                      const std::vector<std::string>& environment = {});
  /// Starts a node that has ended with its earlier arguments, in another run directory. Requires:
  /// the node was started before.
  node_process& restart(const std::string& name);
  /// Like start(), for a node outside of the swarm. `label` names its files, and `arguments`
  /// replace its other arguments.
  std::unique_ptr<node_process> start_other(const std::string& label,
                                            std::vector<std::string> arguments,
                                            const std::vector<std::string>& environment = {});
  node_process& node(const std::string& name) { return *nodes_.at(name); }
  std::uint16_t port_of(const std::string& name);
  std::string address_of(const std::string& name) {
    return "127.0.0.1:" + std::to_string(port_of(name));
  }
  /// The run directory of the node's latest start.
  std::string out_of(const std::string& name) const;
  /// The hello of a host of that name, on a link with that token.
  netem::wire::hello hello_of(const std::string& name, std::uint64_t link) const;
  /// The arguments for a node's credentials: --keys DIR, or --insecure.
  std::vector<std::string> credentials_of(const std::string& name);

  /// The node's summary.json, once the node has ended.
  nlohmann::json summary(const std::string& name) const;
  /// The metrics that the node serves to Prometheus. Waits for the address of a node that was just
  /// started.
  series metrics(const std::string& name);
  /// Checks that all nodes have ended well, with all epochs and without violated invariants.
  void check_trained(std::uint64_t epochs);

private:
  /// Makes a new list that also has the certificate.
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
