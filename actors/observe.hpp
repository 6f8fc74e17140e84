// Observations: facts that an actor reports to observers outside the run. An observation is not a
// message and has no influence on the run. Logs, metrics and invariants are made from observations
// and from nothing else.
//
// An observable struct has `static constexpr std::string_view observed_as`, its name in logs. A
// protocol keeps its structs in actors/<protocol>/observations.hpp; no list names them all. An
// observer calls get_if<stepped>(&what), or keeps a table of observation_handlers. A struct with
// `std::string logged_fields() const` (JSON fields, '"epoch":3,"bytes":7') also gets a line in the
// event log.
#pragma once

#include "actors/ids.hpp"

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace shoal::actors {

template <class T>
concept observable = requires {
  { T::observed_as } -> std::convertible_to<std::string_view>;
};

/// Facts about one type of observation. Each type has one such object, and its address identifies
/// the type.
struct observation_type {
  std::string_view name;
  std::shared_ptr<const void> (*copy)(const void*);
  /// Null if the type has no line of its own in the event log.
  std::string (*logged_fields)(const void*);
};

namespace detail {

template <observable T>
std::shared_ptr<const void> copied(const void* x) {
  return std::make_shared<const T>(*static_cast<const T*>(x));
}

template <observable T>
constexpr auto logged_fields_of() -> std::string (*)(const void*) {
  if constexpr (requires(const T& x) {
                  { x.logged_fields() } -> std::convertible_to<std::string>;
                })
    return [](const void* x) -> std::string { return static_cast<const T*>(x)->logged_fields(); };
  else
    return nullptr;
}

} // namespace detail

template <observable T>
inline constexpr observation_type observation_type_of{T::observed_as, detail::copied<T>,
                                                      detail::logged_fields_of<T>()};

/// A reference to a struct of any observable type. The struct has to outlive the reference. An
/// observer that stores an observation copies it into a kept_observation.
class observation {
public:
  template <observable T>
  observation(const T& what) noexcept : type_(&observation_type_of<T>), what_(&what) {}
  observation& operator=(const observation&) = delete;

  const observation_type& type() const noexcept { return *type_; }
  std::string_view name() const noexcept { return type_->name; }
  const void* address() const noexcept { return what_; }

protected:
  observation(const observation_type* type, const void* what) noexcept : type_(type), what_(what) {}
  observation(const observation&) = default;
  void refer_to(const observation& other) noexcept { type_ = other.type_, what_ = other.what_; }

private:
  const observation_type* type_;
  const void* what_;
};

/// An observation that owns its struct. Copies share the struct.
class kept_observation : public observation {
public:
  explicit kept_observation(const observation& what)
      : kept_observation(what.type(), what.type().copy(what.address())) {}
  kept_observation(const kept_observation&) = default;
  kept_observation& operator=(const kept_observation& other) noexcept {
    owned_ = other.owned_;
    refer_to(other);
    return *this;
  }

private:
  kept_observation(const observation_type& type, std::shared_ptr<const void> owned)
      : observation(&type, owned.get()), owned_(std::move(owned)) {}

  std::shared_ptr<const void> owned_;
};

template <observable T>
bool holds_alternative(const observation& what) noexcept {
  return &what.type() == &observation_type_of<T>;
}
/// The struct, or null if the observation is of another type.
template <observable T>
const T* get_if(const observation* what) noexcept {
  return holds_alternative<T>(*what) ? static_cast<const T*>(what->address()) : nullptr;
}

/// Handlers by type of observation, for an observer of many types. One table look-up replaces a
/// get_if for each type.
template <class Result, class... Args>
class observation_handlers {
public:
  /// Calls `handler` for observations of type T. A later handler for the same type replaces an
  /// earlier one.
  template <observable T, class Handler>
  observation_handlers& on(Handler handler) {
    by_type_[&observation_type_of<T>] = [handler = std::move(handler)](const void* what,
                                                                       Args... args) -> Result {
      return handler(*static_cast<const T*>(what), std::forward<Args>(args)...);
    };
    return *this;
  }
  bool knows(const observation& what) const { return by_type_.contains(&what.type()); }
  /// The handler's result, or an empty Result if the type has no handler.
  Result operator()(const observation& what, Args... args) const {
    const auto found = by_type_.find(&what.type());
    return found == by_type_.end() ? Result()
                                   : found->second(what.address(), std::forward<Args>(args)...);
  }

private:
  std::unordered_map<const observation_type*, std::function<Result(const void*, Args...)>> by_type_;
};

/// The host has evidence against a member, and lets no message of it in any more.
struct member_banned {
  static constexpr std::string_view observed_as = "member_banned";
  peer_id culprit = 0; ///< an incarnation of the member; 0: none is known
  member_id member;
  std::string why;
  std::string logged_fields() const;
};

/// An actor dropped and counted a message that no correct peer sends.
struct misbehaved {
  static constexpr std::string_view observed_as = "misbehaved";
  peer_id culprit = 0;
  std::string why;
};

} // namespace shoal::actors
