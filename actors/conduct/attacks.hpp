// Attacks of a member on the swarm. Each one changes what the host sends, or what it contributes to
// a round. The host's own actors do not know of the attack.
//
// A member has a valid key, so changed fields are sent as the member's own words. Fields that a
// signature covers stay signed as before: an attack that signs a lie is one of its own.
#pragma once

#include "actors/conduct/conduct.hpp"
#include "actors/conduct/conducts.hpp"
#include "actors/host.hpp"
#include "actors/message_fields.hpp"

#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace shoal::actors {

/// Decides when an attack strikes.
class attack : public conduct {
public:
  attack(host& on, const conduct_options& how);

protected:
  /// True if the host strikes now. A strike with `every` excludes others for that time.
  bool strikes();
  /// The same for what belongs to an epoch.
  bool strikes_in(std::uint64_t epoch);
  /// True if the attack concerns messages of this type.
  bool concerns(const caf::message& content) const;

  host& on_;
  const conduct_options how_;
  std::mutex mutex_; // guards the members below; on the wall clock, several threads call
  rng draws_;

private:
  const std::int64_t started_;
  std::int64_t last_ = 0; // 0: never
};

/// These options for an attack on messages of these types, whatever the options say of messages.
conduct_options about(conduct_options how, std::vector<std::string> messages);

/// An attack on the messages of the host.
class message_attack : public attack {
public:
  using attack::attack;
  bool alters_messages() const final { return true; }
  void alter(outgoing_message message, std::vector<outgoing_message>& out) final;

protected:
  virtual void strike(outgoing_message message, std::vector<outgoing_message>& out) = 0;
};

struct mutated_messages final : message_attack {
  using message_attack::message_attack;
  void strike(outgoing_message message, std::vector<outgoing_message>& out) override;
};

struct dropped_messages final : message_attack {
  using message_attack::message_attack;
  void strike(outgoing_message, std::vector<outgoing_message>&) override {}
};

struct repeated_messages final : message_attack {
  using message_attack::message_attack;
  void strike(outgoing_message message, std::vector<outgoing_message>& out) override;
};

struct replayed_messages final : message_attack {
  using message_attack::message_attack;
  void strike(outgoing_message message, std::vector<outgoing_message>& out) override;

private:
  std::deque<caf::message> earlier_;
};

struct borrowed_identity final : message_attack {
  using message_attack::message_attack;
  void strike(outgoing_message message, std::vector<outgoing_message>& out) override;
};

struct redirected_replies final : message_attack {
  using message_attack::message_attack;
  void strike(outgoing_message message, std::vector<outgoing_message>& out) override;

private:
  std::deque<caf::actor> seen_;
};

struct equivocation final : message_attack {
  using message_attack::message_attack;
  void strike(outgoing_message message, std::vector<outgoing_message>& out) override;
};

/// Signs what it says, so that each victim has a proof: two votes in one round.
struct two_votes final : message_attack {
  two_votes(host& on, conduct_options how);
  void strike(outgoing_message message, std::vector<outgoing_message>& out) override;
};

/// A leader that all others follow, because it names the earliest deadline. It lets them join, and
/// begins no group.
struct stalling_leader final : message_attack {
  stalling_leader(host& on, conduct_options how);
  void ask_for_round(round_request& request) override;
  void strike(outgoing_message, std::vector<outgoing_message>&) override {}
};

/// An attack on the values of rounds (attacks_on_values.hpp has more of them).
class value_attack : public attack {
public:
  using attack::attack;
  void contribute(payload& values, const round_request& request) override;
  bool falsifies_sizes() override;

protected:
  virtual void change(std::span<float> values) = 0;

private:
  bool falsifies_ = false; // in the round of the last contribution
};

struct huge_values final : value_attack {
  using value_attack::value_attack;
  void change(std::span<float> values) override;
};

struct flipped_signs final : value_attack {
  using value_attack::value_attack;
  void change(std::span<float> values) override;
};

struct random_direction final : value_attack {
  using value_attack::value_attack;
  void change(std::span<float> values) override;
};

struct false_means final : attack {
  false_means(host& on, const conduct_options& how) : attack(on, how) {}
  void reduced(const reduced_unit& what) override;
};

/// A server of an inference swarm that computes wrongly.
struct wrong_layers final : attack {
  wrong_layers(host& on, const conduct_options& how) : attack(on, how) {}
  void computed_layers(std::span<float> outputs) override;
};

/// A copy of a message with one other field. `field` counts the fields in the order of
/// serialization. `how` chooses among the changes that make sense for the field's type. An address
/// becomes one of `others`. Nothing if the message has no such field.
std::optional<caf::message> change_field(const caf::message& content, std::size_t field,
                                         std::uint64_t how, const std::vector<caf::actor>& others);
/// The number of fields of a message; 0 for an unknown one.
std::size_t count_fields(const caf::message& content);

} // namespace shoal::actors
