// The smallest world for protocol actors: CAF's deterministic test scheduler, virtual time, and
// hosts that are only names. Messages between hosts arrive at once and cost nothing; addresses are
// the actors' own handles. The world keeps all observations for the test.
#pragma once

#include "actors/host.hpp"
#include "actors/host_messages.hpp"
#include "actors/observe.hpp"
#include "actors/trust/evidence.hpp"
#include "actors/trust/identity.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scheduler/test_coordinator.hpp>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace shoal::actors::testing {

class mini_world;

class mini_host : public host {
public:
  mini_host(mini_world& world, std::string name, peer_id id)
      : world_(world), name_(std::move(name)), id_(id), key_(stand_in_key(name_)) {}

  std::string_view name() const override { return name_; }
  peer_id id() const override { return id_; }
  std::int64_t utc_ns() const override;
  rng random_stream(std::string_view name) const override;
  caf::actor address_of(const caf::actor& local) override;
  const key256& key() const override { return key_; }
  signature sign(const digest& statement) const override;
  bool is_signed_by(const key256& key, const digest& statement, const signature& by) const override;
  bool admits(const key256& key, std::string_view certificate) override;
  bool ban(const evidence& what) override;
  bool ban(const verdict& what) override;
  bool refuses(const caf::strong_actor_ptr& sender) const noexcept override;
  bool is_banned(const member_id& who) const noexcept override { return bans.has(who); }
  peer_id peer_of(const caf::strong_actor_ptr& address) const override;
  member_id member_of(const caf::strong_actor_ptr& address) const override;
  std::uint64_t rate_up() const override { return up; }
  std::uint64_t rate_down() const override { return down; }
  std::uint64_t seen_address(const caf::actor&) override { return id_; }
  void dial(const caf::actor&, duration, const caf::actor& notify, std::uint64_t token) override {
    caf::anon_send(notify, dialled{token, true});
  }
  bool has_relay() const override { return false; }
  void run(std::string_view job, std::function<void()> work, duration time,
           const caf::actor& notify, std::uint64_t token) override;
  void probe(std::string_view point) override;
  void observe(const observation& what) override;
  void arriving() noexcept override { ++arrived; }
  bool failpoint(std::string_view branch) override {
    const auto left = failpoints.find(branch);
    return left != failpoints.end() && left->second > 0 && left->second-- > 0;
  }

  /// Kills every actor of this host, in order of creation.
  void kill();
  bool alive() const noexcept { return alive_; }

  std::uint64_t up = 100'000'000, down = 100'000'000;
  duration skew{}; ///< the error of this host's UTC
  std::uint64_t arrived = 0;
  ban_list bans;
  std::map<std::string_view, unsigned> failpoints; ///< how often each is still taken

private:
  friend mini_world;
  mini_world& world_;
  std::string name_;
  peer_id id_;
  key256 key_;
  bool alive_ = true;
  std::vector<caf::actor> actors_;
};

class mini_world {
public:
  /// `serializes`: the test turns whole caf::messages into bytes. Registering the message types for
  /// that takes longer than most worlds live.
  explicit mini_world(std::uint64_t seed = 1, bool serializes = false);
  /// Kills all actors first, because periodic timers would keep the scheduler busy for ever.
  ~mini_world();

  /// Ids ascend from 1 in the order of creation.
  mini_host& add_host(std::string name);

  template <class Actor, class... Args>
  caf::actor spawn(mini_host& on, Args&&... args) {
    return spawn_by(on, [&](caf::actor_system& system) {
      return caf::actor_cast<caf::actor>(
          system.spawn<Actor>(static_cast<host&>(on), std::forward<Args>(args)...));
    });
  }
  /// The same with a function that spawns the actor.
  template <class Spawn>
  caf::actor spawn_by(mini_host& on, Spawn spawn) {
    auto out = spawn(*system_);
    on.actors_.push_back(out);
    own(out.id(), on);
    return out;
  }

  template <class Message>
  void send(const caf::actor& to, Message message) {
    caf::anon_send(to, std::move(message));
  }

  /// Runs all messages and timers up to now + `time`, in order of time.
  void run_for(duration time);
  /// Delivers the messages that need no time to pass.
  void settle();
  duration now() const;

  caf::actor_system& system() { return *system_; }
  std::uint64_t seed() const noexcept { return seed_; }

  /// All observations of one type, in order, with their hosts.
  template <class Observation>
  std::vector<std::pair<peer_id, Observation>> observed() const {
    std::vector<std::pair<peer_id, Observation>> out;
    for (const auto& [who, what] : observations)
      if (const auto* one = get_if<Observation>(&what)) out.emplace_back(who, *one);
    return out;
  }

  std::vector<std::pair<peer_id, kept_observation>> observations;
  /// Called at each probe; a test may kill the host from here.
  std::function<void(mini_host&, std::string_view)> on_probe;

  /// The UTC at virtual time 0.
  static constexpr std::int64_t utc_start_ns = 1'700'000'000'000'000'000;

private:
  friend mini_host;
  caf::scheduler::test_coordinator& scheduler() const;

  std::uint64_t seed_;
  std::unique_ptr<caf::actor_system_config> config_;
  std::deque<mini_host> hosts_; // must outlive the system
  struct owner {
    caf::actor_id actor = 0;
    mini_host* host = nullptr;
  };
  /// Remembers the host of an actor that has an address, until 4096 younger actors have one. The
  /// table never grows, because tests measure the memory of worlds that live long.
  void own(caf::actor_id actor, mini_host& host) {
    owners_[actor % owners_.size()] = {actor, &host};
  }
  mini_host* owner_of(caf::actor_id actor) const {
    const auto& found = owners_[actor % owners_.size()];
    return found.actor == actor ? found.host : nullptr;
  }
  std::vector<owner> owners_ = std::vector<owner>(4096);
  std::unique_ptr<caf::actor_system> system_;
};

/// An actor that keeps the messages of types `Messages` for the test.
template <class... Messages>
class collector : public caf::event_based_actor {
public:
  using log = std::tuple<std::vector<Messages>...>;

  collector(caf::actor_config& config, host&, std::shared_ptr<log> into)
      : caf::event_based_actor(config), into_(std::move(into)) {
    set_default_handler(caf::drop);
  }
  // The kept messages may hold this actor's handle.
  void on_exit() override { into_.reset(); }

protected:
  caf::behavior make_behavior() override {
    return {[this](const Messages& m) { std::get<std::vector<Messages>>(*into_).push_back(m); }...};
  }

private:
  std::shared_ptr<log> into_;
};

} // namespace shoal::actors::testing
