// A server of experts: computes their passes, makes their optimizer steps, announces them in the
// DHT, and keeps copies of other servers' experts.
//
// Steps:
// - announce: every `renew` the server writes one record under each prefix of its experts
//   (expert_record.hpp), and one under the key of all servers.
// - copy: every `copy_every` it sends each expert that has changed to `copies` other servers. The
//   servers with the largest hash of (expert, host) get them, so all agree on the places.
// - revive: a server whose copy lost its owner reads the record of the expert. If no host holds the
//   expert, the server offers its copy under the expert's revival key. After `offer_time` the
//   freshest offer wins; ties go to the smallest peer id. The winner holds the expert from then on.
// - begin: without `experts`, a server has a hand of experts. It begins them if trainers are there
//   and have just begun. Later it begins one of them anew only if no host has held the expert
//   for `forget_after`, because all its copies are gone.
// - give up: each renewal reads the records of the server's own prefixes. Another host may have an
//   expert with more steps, or with as many and a smaller peer id. The server then keeps its own as
//   a copy only. An expert that trainers have called since the last renewal stays. Trainers prefer
//   a host with more steps if that host answers.
// - check: a record is a claim. Before a server leaves an expert to the host that claims it, it
//   sends that host one row through the expert (holder_claims.hpp).
// - refuse: a copy whose parameters are far larger than those of the host's own experts, or of
//   other hosts' copies, is not kept (size_bound.hpp). A backward pass whose rows or gradients are
//   far larger than those of most trainers makes no step.
// Left out: a check that a copy is the work of honest steps. A copy replaces an older one only if
// it is from the same owner, or if that owner is gone.
// Source: Ryabinin and Gusev, arXiv:2002.04013, section 3.3.
#pragma once

#include "actors/conduct/conduct.hpp"
#include "actors/experts/expert_batch.hpp"
#include "actors/experts/expert_record.hpp"
#include "actors/experts/holder_claims.hpp"
#include "actors/experts/messages.hpp"
#include "actors/experts/observations.hpp"
#include "actors/experts/request_log.hpp"
#include "actors/experts/size_bound.hpp"
#include "actors/experts/trainer_record.hpp"
#include "actors/protocol_actor.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace shoal::actors {

struct expert_server_config {
  std::string model;
  std::shared_ptr<const learn::expert_block> block;
  std::uint32_t layers = 1;
  std::vector<std::uint32_t> grid;
  std::vector<expert_id> experts; ///< that this server begins with, untrained
  std::uint64_t seed = 1;         ///< seeds their initial parameters
  std::vector<expert_id> hand;    ///< in place of `experts`
  /// The state with which an expert begins. May be empty: a fresh one by `seed`.
  std::function<expert_state(const expert_id&)> initial;
  duration forget_after = std::chrono::minutes(3);
  /// The samples of an epoch (trainer_record.hpp), and the last epoch; 0: no end. With `epoch_of`
  /// 0 the server does not follow the trainers.
  std::uint64_t epoch_of = 0, epochs = 0;
  expert_optimizer optimizer;
  duration batch_time = std::chrono::milliseconds(1);
  duration row_time = std::chrono::microseconds(100); ///< a backward pass takes three times as long
  std::size_t most_rows = most_expert_rows;           ///< the limit of a batch, and of one request
  std::size_t most_waiting = 4096; ///< requests, a quarter of them from one member
  std::size_t most_waiting_bytes = std::size_t{1} << 30;
  std::uint64_t most_staleness = 0; ///< older gradients are refused; 0: none is
  std::size_t copies = 2;
  std::size_t most_copies = 1024; ///< other servers' experts in memory, at most
  duration copy_every = std::chrono::seconds(30);
  duration renew = std::chrono::seconds(20);
  duration record_lifetime = std::chrono::minutes(1); ///< the same for all servers of a model
  duration offer_time = std::chrono::seconds(2);
  std::size_t sized = 0;      ///< values of a row that travel as a size alone (activations.hpp)
  std::size_t copy_bytes = 0; ///< the same for a copy
  double jitter = 0;          ///< the computing times vary, as device_profile::jitter
  double most_growth = 32;    ///< a copy may be so many times as large as those of most hosts, and
                              ///< a gradient as those of most trainers
  std::shared_ptr<actors::conduct> conduct = honest_conduct();
  caf::actor dht;
};

class expert_server final : public protocol_actor {
public:
  /// tick{drain} tells the server that the run ends. It begins and revives no expert any more, and
  /// goes on serving.
  static constexpr std::uint32_t drain = 100;

  expert_server(caf::actor_config& config, host& on, expert_server_config options);
  caf::behavior make_behavior() override;
  void on_exit() override;

private:
  enum timer : std::uint32_t { renewal, copying, offer_over, check_again, look_again, claim_late };
  struct held_expert {
    std::shared_ptr<const expert_state> state;
    std::map<peer_id, std::uint64_t> copied{}; // steps of the last copy by receiver
    std::optional<duration> called{};          // the last pass
  };
  struct kept_copy {
    std::shared_ptr<const expert_state> state;
    peer_id owner = 0;
    caf::actor_addr owner_address;
    std::uint64_t revival = 0; // the attempt that is under way; 0: none
    bool no_records = false;   // the last look-up for its holder found nothing at all
  };
  struct other_server {
    caf::actor address;
    std::int64_t expires_utc_ns = 0;
  };

  bool is_on_grid(std::uint32_t layer, const expert_place& place) const;
  void receive(const expert_pass& m);
  void receive(const expert_copy& m);
  void receive(const expert_wanted& m);
  void receive(const expert_answer& m);
  void receive(const found& m);
  void refuse(const expert_task& what, expert_refusal why);
  void start_batch();
  void computed();

  void hold(const expert_id& which, std::shared_ptr<const expert_state> state, bool revived);
  void publish();
  void announce(const std::string& key, payload value, duration lifetime);
  void read_own_prefixes();
  void give_up_older(const expert_id& prefix, const found& m);

  struct proven_holder {
    std::optional<expert_holder> holder;
    bool is_open = false; // a host is asked whether it holds the expert
  };
  /// The host with the expert, of those whose records claim it.
  proven_holder holder_of(const expert_id& which, expert_dictionary& records);
  std::optional<expert_holder> claim_of(const expert_id& which, const expert_dictionary& records);
  void check_claim(const expert_id& which, const expert_holder& claim);
  /// A host has answered whether it holds the expert.
  void claim_ended(const std::optional<expert_id>& which);

  void send_copies();
  /// True if a copy of another host's expert may have parameters of this size.
  bool may_be(peer_id owner, double size);
  void watch(const caf::actor& owner);
  /// The copy of the expert belongs to this owner from now on.
  void set_owner(const expert_id& which, kept_copy& copy, peer_id peer, const caf::actor& owner);
  std::vector<peer_id> receivers_of(const expert_id& which) const;

  /// An expert as it begins.
  std::shared_ptr<const expert_state> fresh(const expert_id& which) const;
  void look_for_hand();
  void take_hand(const expert_id& prefix, const found& m);
  void read_trainers(const found& m);

  /// Looks for holders of the experts whose owners have died, once for each prefix. A look-up may
  /// miss a record, so a copy whose owner lives is left alone.
  /// `of`: one owner; 0: all of them.
  void check_owners(peer_id of = 0);
  void ask_for_holders(const expert_id& prefix);
  void offer(const expert_id& which, std::uint64_t attempt);
  void decide(const expert_id& which, const found& m);
  void on_down(const caf::actor_addr& whom) override;

  /// Look-ups whose answers are awaited, by token.
  enum class question : std::uint8_t { servers, own_prefix, holders, offers, trainers, hand };
  void ask(const std::string& key, question why, const expert_id& about);

  expert_server_config options_;
  std::map<expert_id, held_expert> experts_;
  std::map<expert_id, kept_copy> copies_;
  task_pools pools_;
  request_log log_;
  std::shared_ptr<expert_work> running_;
  std::set<std::string> announced_;
  std::map<peer_id, other_server> servers_;
  std::set<caf::actor_addr> watched_;
  expert_hosts hosts_; // owners of copies that died, and offers that have won
  std::map<std::uint64_t, std::pair<question, expert_id>> asked_;
  std::map<std::uint64_t, expert_id> revivals_; // by the attempt
  std::uint64_t last_token_ = 0;
  bool copies_are_due_ = false, draining_ = false, met_trainers_ = false;
  /// Experts of the hand that no host held at the last look, and since when.
  std::map<expert_id, duration> missing_;
  swarm_samples learnt_;
  std::uint64_t epoch_ = 0;
  std::optional<duration> over_since_; // the last epoch was reached, and trainers are at work
  double phase_; // factor of the first periods of timers, from 0.5 to 1.5; then 1
  rng jitter_;
  size_bound copy_sizes_, row_sizes_, gradient_sizes_;
  holder_claims claims_;
};

} // namespace shoal::actors
