// Answers control requests (send_control_request.hpp): one question and one answer, on a pipe of
// their own. This host closes requests that are too many, too long, or too slow.
#pragma once

#include "kernels/base/units.hpp"
#include "netem/wire/guarded.hpp"
#include "netem/wire/network.hpp"
#include "netem/wire/pipe.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace shoal::netem::wire {

inline constexpr std::size_t most_control_requests = 32; // open at the same time
/// Places that only operators get, so that others cannot keep operators out.
inline constexpr std::size_t kept_for_operators = 8;
/// Places for one name. All strangers together count as one name.
inline constexpr std::size_t most_requests_of_one = 4;

/// The requests that are open. Thread safety: none.
class open_requests {
public:
  /// Returns false if too many requests are open, in all or for `who`, or after stop().
  bool add(std::shared_ptr<pipe> through, const control_client& who, duration now);
  /// The pipe to answer on. Null if the request has ended or its question was taken before.
  std::shared_ptr<pipe> take_question(const pipe* through);
  void remove(const pipe* through) { open_.erase(through); }
  /// The requests that began more than `limit` ago.
  std::vector<std::shared_ptr<pipe>> overdue(duration now, duration limit) const;
  /// Refuses all later requests. Returns the pipes of the open ones.
  std::vector<std::shared_ptr<pipe>> stop();

private:
  struct request {
    std::shared_ptr<pipe> through;
    std::string name; // empty: a stranger, or there are no keys
    bool operates = false;
    duration since{};
    bool asked = false;
  };
  bool stopped_ = false;
  std::map<const pipe*, request> open_;
};

/// The requests to one host. Thread safety: all.
class control_requests : public std::enable_shared_from_this<control_requests> {
public:
  struct surroundings {
    std::shared_ptr<const admission> admits; ///< null without keys
    /// If empty, no question is answered.
    std::function<control_answer(const control_client& who, const std::string& question)> answer;
    std::function<std::int64_t()> utc_ns;
    std::function<void(std::string_view why)> count_refusal;
  };
  explicit control_requests(surroundings around) : around_(std::move(around)) {}

  void incoming(std::shared_ptr<pipe> made, duration now);
  void close_overdue(duration now, duration limit);
  void close();

private:
  /// Fills in the client of a request, or says why it is refused.
  refusal identify(const pipe& through, control_client& who, std::string& detail) const;
  void asked(const pipe* through, const control_client& who, const payload& bytes);

  const surroundings around_;
  guarded<open_requests> requests_;
};

/// Closes a pipe that has no reader.
void reject(const std::shared_ptr<pipe>& made);

} // namespace shoal::netem::wire
