// All members of one averaging round as plain state machines, and a network that consists of
// queues. A test decides when each message arrives, which members die, and which pairs lose each
// other. With `matchmaking` the members find their groups first, as group actors do.
#pragma once

#include "actors/averaging/butterfly.hpp"
#include "actors/averaging/matchmaking.hpp"
#include "kernels/base/rng.hpp"
#include "tests/actors/support/mini_world.hpp"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace shoal::actors::testing {

struct lab_member {
  std::uint64_t weight = 1;
  bool reachable = true; ///< false: the member gets no part
  bool takes = true;     ///< false: the member only reduces
  std::uint64_t rate_up = 1, rate_down = 1;
};

struct lab_options {
  std::vector<lab_member> members;
  std::uint32_t values_per_part = 6;
  std::uint64_t chunk_bytes = 8;
  std::uint32_t window_chunks = 2;
  kernels::codec codec = kernels::codec::none; ///< both ways; top_k: of contributions only
  double top_k_fraction = 0.5;
  std::string conduct = "honest"; ///< the conduct of all members
  std::string aggregator = "mean";
  option_values aggregation{};
  std::optional<std::uint64_t>
      shuffle{}; ///< seed; messages of different pairs then overtake each other
  /// The members know each other's addresses and no group. Member m would lead after m + 1 seconds.
  bool matchmaking = false;
  /// Changes the values of each member before the round.
  std::function<void(std::uint32_t member, std::vector<float>& values)> change{};
  /// The hosts and addresses of the lab. Labs that follow each other may share them, because an
  /// actor system takes longer to make than a round takes. Empty: the lab makes its own.
  std::shared_ptr<struct lab_site> site{};
};

/// A world, and the hosts and addresses in it.
struct lab_site {
  mini_world world;
  caf::actor stranger;
  std::vector<mini_host*> hosts;
  std::vector<caf::actor> addresses;
  mini_host* stranger_host = nullptr;
  explicit lab_site(std::size_t members);
};

class round_lab {
public:
  explicit round_lab(lab_options options);
  ~round_lab();
  round_lab(const round_lab&) = delete;

  void start();
  /// Delivers one message. False if there is none.
  bool step();
  /// Delivers all messages under way; no time passes.
  void settle();
  /// Time passes, and members check their senders.
  void pass(duration time);
  /// Runs until all live members have a result. False if some have none after all timeouts.
  bool run();

  /// The member ends. `lost`: all its messages that have not arrived are lost.
  void kill(std::uint32_t member, bool lost);
  /// Cuts a pair off from each other. Both notice now, or when `notice` is called.
  void cut(std::uint32_t a, std::uint32_t b, bool notice_now);
  void notice();
  /// Keeps the messages of `from` to `to` until release().
  void hold_back(std::uint32_t from, std::uint32_t to) { held_.insert({from, to}); }
  void release() { held_.clear(); }
  /// Sends a message as `from`.
  void inject(std::uint32_t from, std::uint32_t to, caf::message content);
  /// Sends a message from a stranger to the group.
  void inject_by_stranger(std::uint32_t to, caf::message content);

  std::uint32_t size() const { return static_cast<std::uint32_t>(members_.size()); }
  bool alive(std::uint32_t member) const { return members_[member].alive; }
  bool ended(std::uint32_t member) const { return members_[member].result.has_value(); }
  const round_result& result(std::uint32_t member) const { return *members_[member].result; }
  butterfly& round(std::uint32_t member) { return *members_[member].round; }
  const group_begun& group() const { return group_; }
  /// The group that the member found. Requires: the lab has matchmaking.
  const group_begun& group_of(std::uint32_t member) const { return members_[member].group; }
  const mini_host& host(std::uint32_t member) const { return *members_[member].host; }
  const caf::actor& address(std::uint32_t member) const { return members_[member].address; }
  duration now() const { return now_; }
  duration sender_timeout() const { return config_.sender_timeout; }
  duration round_timeout() const { return config_.round_timeout; }
  const caf::actor& stranger() const { return site_->stranger; }
  /// The value of the member's record in the hash table: its deadline, and whether it leads.
  std::function<payload(std::uint32_t of)> bid_of;
  std::uint64_t delivered = 0;
  std::uint64_t bytes = 0; ///< size of the sent payloads
  std::vector<std::string> suspicions;
  std::map<std::string, std::uint64_t> probes;
  std::function<void(std::uint32_t member, std::string_view point)> on_probe;
  /// Sees each message before it is under way. False: the message is lost.
  std::function<bool(std::uint32_t from, std::uint32_t to, const caf::message&)> filter;

  /// Describes errors in the results, also in those of dead members. An error is a difference in
  /// bits, a sum that does not match its senders, or an outcome that does not match the events.
  std::vector<std::string> errors() const;
  /// The members' outcomes, as `opf-` (ok, partial, failed, dead without one).
  std::string outcomes() const;

private:
  struct io;
  struct member {
    caf::actor address;
    mini_host* host = nullptr;
    round_request request;
    std::unique_ptr<io> world;
    std::unique_ptr<matchmaking> matcher;
    std::unique_ptr<butterfly> round;
    group_begun group;
    duration began{};
    bool passed_deadline = false;
    // Messages of the round that came before its begin.
    std::vector<std::pair<caf::strong_actor_ptr, caf::message>> early;
    std::optional<round_result> result;
    bool alive = true;
    bool left = false; // the member's actor has quit
  };
  struct envelope {
    std::uint64_t order = 0;
    std::optional<caf::message> content; // empty: `from` is gone
  };
  using pair = std::pair<std::uint32_t, std::uint32_t>;

  void make_group();
  void make_matchers();
  void begin_round(std::uint32_t member, group_begun group);
  void end(std::uint32_t member, round_result result);
  void find_peers();
  void check_deadlines();
  void leave();
  /// The verification of the aggregator for a stretch of the result. Lossy codecs are not checked.
  std::optional<std::string> violation_of(const round_result& result,
                                          const part_outcome& stretch) const;
  void send(std::uint32_t from, const caf::actor& to, caf::message content);
  void deliver(pair which, envelope what);
  void on_down(std::uint32_t to, const caf::actor_addr& whom);
  void hand_over(std::uint32_t to, const caf::strong_actor_ptr& from, const caf::message& content);

  lab_options options_;
  averaging_config config_;
  std::shared_ptr<lab_site> site_;
  group_begun group_;
  std::vector<member> members_;
  std::map<pair, std::deque<envelope>> under_way_;
  std::set<pair> cut_, unnoticed_, held_;
  rng random_;
  std::uint64_t order_ = 0;
  duration now_{};
};

} // namespace shoal::actors::testing
