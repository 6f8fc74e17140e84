// One process of an inference swarm on the wall clock. It holds servers, or a client that writes,
// or both.
// - Alone: its servers and its client are hosts of an emulated network without delay.
// - In a swarm of processes: it is one host on the real network (netem/wire/network.hpp). It has
//   the keys of the swarm, and holds one server or the client.
// Hosts of one swarm serve one model. The network refuses hosts with another one.
#pragma once

#include "actors/inference/route.hpp"
#include "actors/inference/session_table.hpp"
#include "kernels/base/result.hpp"
#include "kernels/base/units.hpp"
#include "kernels/learn/model_file.hpp"
#include "kernels/learn/remote_layers.hpp"
#include "kernels/learn/sampling.hpp"
#include "netem/wire/address.hpp"
#include "netem/wire/credentials.hpp"
#include "scenarios/runner/ban_book.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace shoal::scenarios {

/// The place of a process in a swarm of processes.
struct inference_place {
  std::string name;                             ///< differs from the names of all other hosts
  std::optional<netem::wire::address> listen;   ///< empty: the process only dials
  std::string advertise;                        ///< the address that others dial, if not `listen`
  std::vector<netem::wire::address> join;       ///< running hosts of the swarm
  std::optional<netem::wire::credentials> keys; ///< empty: no encryption, no authentication
  std::string version{};                        ///< the program's, as reports show it
  std::vector<banned_member> bans;              ///< members whose messages do not arrive
};

/// An event of a text, for people.
struct inference_news {
  enum class kind : std::uint8_t { route, lost, missing, checked } what = kind::route;
  std::uint64_t writing = 0; ///< the number that write() returned
  /// route: 'layers 0:2 on server-0, 2:5 on server-1'. lost: 'server-0: the server is gone'.
  /// missing: 'no server holds layers 2:5: waiting for one'.
  /// checked: 'server-1 computes wrongly: 3 tokens are written again'.
  std::string text;
  struct hop {
    std::string server;
    actors::layer_span layers;
  };
  std::vector<hop> hops; ///< the hops of a route, in the order of the layers
};

struct inference_process_options {
  std::shared_ptr<const learn::served_model> model; ///< required
  /// The layers of the servers of this process. With a `place`, at most one server.
  std::vector<actors::layer_span> servers;
  /// With a `place`: the process has one server, which chooses so many layers itself.
  std::optional<std::uint32_t> chosen_layers;
  std::optional<inference_place> place;
  actors::session_limits limits;
  learn::weight_format weights = learn::weight_format::float32;
  bool push = false; ///< servers send outputs to each other, too
  /// The share of tokens after which other servers compute a text again, as
  /// inference_client_config::check. A token is told after a check of all layers that covers the
  /// token, or at the end of the text.
  double check = 0;
  /// How servers behave, by their places in `servers`: kinds of actors::conducts().
  std::map<std::size_t, std::string> conducts;
  duration detection_time = std::chrono::seconds(5);
  duration record_lifetime = std::chrono::minutes(1);
  unsigned compute_threads = 2;
  // The callbacks run on any thread, and may not call back.
  std::function<void(const inference_news&)> on_news;
  std::function<void(const std::string&)> say; ///< a line about links or layers, for the operator
};

/// A text to write.
struct writing {
  std::vector<learn::token_id> prompt;
  std::uint32_t tokens = 100;
  learn::sampling_options sampling{.temperature = 0};
  std::uint64_t seed = 1;
  // The callbacks run on any thread, one at a time, and may not call back.
  std::function<void(learn::token_id)> on_token;
  /// The last call. `why` is empty, or says why there is no text.
  std::function<void(const std::string& why)> on_end;
};

class inference_process {
public:
  /// Errors: layers that the model lacks, or an address at which the process cannot listen.
  static result<std::unique_ptr<inference_process>> start(inference_process_options options);
  /// Tells the other hosts that this one leaves.
  ~inference_process();
  inference_process(const inference_process&) = delete;

  /// Begins to write. The text is that of write_alone() (inference_swarm.hpp) with request_of(0).
  /// Returns the number of the text. Thread safety: all members.
  std::uint64_t write(writing what);
  /// Ends a text early, and frees the cache of its sessions. No callback of it follows.
  void cancel(std::uint64_t which);
  /// The texts that are being written.
  std::size_t writes() const;
  /// The layers of the swarm for a program that trains here (kernels/learn/remote_blocks.hpp).
  /// `adapter` names a LoRA at the servers; empty: none. After the end of the process all calls
  /// fail.
  std::shared_ptr<learn::remote_layers> layers(const std::string& adapter = {});
  /// The servers of this process take no new session.
  void drain();
  /// Whether an operator has told the process to leave (`shoal drain`).
  bool told_to_leave() const;
  /// Whether draining servers have no session left.
  bool drained() const;
  /// Why the process cannot go on, if so.
  std::optional<std::string> broken() const;
  /// The address at which the process listens; empty if it only dials.
  std::string listens_at() const;

private:
  class running;
  explicit inference_process(std::unique_ptr<running> made);
  std::unique_ptr<running> running_;
};

} // namespace shoal::scenarios
