#include "netem/wire/control_requests.hpp"
#include "netem/wire/send_control_request.hpp"
#include "tests/netem/wire/fake_pipe.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

using namespace shoal;
using namespace shoal::netem::wire;
using namespace std::chrono_literals;

namespace {

/// A host that answers requests without keys, and records the questions.
struct desk {
  std::vector<std::string> asked;
  std::vector<std::string> counted;
  std::shared_ptr<control_requests> requests;

  explicit desk(std::shared_ptr<const admission> admits = nullptr, bool answers = true) {
    control_requests::surroundings around;
    around.admits = std::move(admits);
    if (answers)
      around.answer = [this](const control_client&, const std::string& question) {
        asked.push_back(question);
        return control_answer{true, "fine"};
      };
    around.utc_ns = [] { return std::int64_t{0}; };
    around.count_refusal = [this](std::string_view why) { counted.emplace_back(why); };
    requests = std::make_shared<control_requests>(std::move(around));
  }
  std::shared_ptr<fake_pipe> dial(duration now = 1s) const {
    auto out = std::make_shared<fake_pipe>();
    requests->incoming(out, now);
    return out;
  }
};

std::string answer_on(const fake_pipe& through) {
  REQUIRE(through.sent.size() == 1);
  const auto said = read_control_answer(bytes_of(through.sent[0]));
  REQUIRE(said);
  return (said->done ? "yes, " : "no, ") + said->text;
}

class refuses_all final : public admission {
public:
  refusal check(const std::string&, std::int64_t, certified_member&,
                std::string& detail) const override {
    detail = "nobody is";
    return refusal::not_admitted;
  }
  std::uint64_t revocation_list_number() const override { return 0; }
  std::string revocation_list_pem() const override { return {}; }
  revocation_list_news offer(const std::string&, std::string&) const override {
    return revocation_list_news::known;
  }
};

} // namespace

TEST_CASE("members and strangers cannot take the places of operators") {
  open_requests open;
  const auto add = [&](const std::string& name, bool operates = false) {
    return open.add(std::make_shared<fake_pipe>(), {name, operates}, 1s);
  };
  for (std::size_t i = 0; i < most_requests_of_one; ++i) CHECK(add("mallory"));
  CHECK_FALSE(add("mallory"));
  for (std::size_t i = 0; i < most_requests_of_one; ++i) CHECK(add("")); // strangers
  CHECK_FALSE(add(""));
  CHECK(add("honest"));
  std::size_t others = 2 * most_requests_of_one + 1;
  while (add("member-" + std::to_string(others))) ++others;
  CHECK(others == most_control_requests - kept_for_operators);
  for (std::size_t i = 0; i < kept_for_operators; ++i) CHECK(add("boss", true));
  CHECK_FALSE(add("boss", true));
}

TEST_CASE("a question whose answer fails is answered, and the failure is counted") {
  std::vector<std::string> counted;
  control_requests::surroundings around;
  around.answer = [](const control_client&, const std::string&) -> control_answer {
    throw std::runtime_error("no UTF-8");
  };
  around.utc_ns = [] { return std::int64_t{0}; };
  around.count_refusal = [&](std::string_view why) { counted.emplace_back(why); };
  const auto requests = std::make_shared<control_requests>(std::move(around));
  const auto through = std::make_shared<fake_pipe>();
  requests->incoming(through, 1s);
  through->receive("status");
  CHECK(answer_on(*through) == "no, it could not answer");
  CHECK(through->finished);
  CHECK(counted == std::vector<std::string>{"failed_callback"});
}

TEST_CASE("a request is one question and one answer") {
  const desk host;
  const auto through = host.dial();
  through->receive("status");
  CHECK(answer_on(*through) == "yes, fine");
  CHECK(through->finished);
  through->receive("drain");
  CHECK(host.asked == std::vector<std::string>{"status"});
}

TEST_CASE("a question that is too long is counted and not answered") {
  const desk host;
  const auto through = host.dial();
  through->receive(std::string(longest_question + 1, '?'));
  CHECK(host.asked.empty());
  CHECK(host.counted == std::vector<std::string>{"bad_frame"});
  CHECK(through->closed);
  const auto other = host.dial();
  other->receive(std::string(longest_question, '?'));
  CHECK(answer_on(*other) == "yes, fine");
}

TEST_CASE("a refused request is answered with the reason") {
  const desk keys(std::make_shared<refuses_all>());
  const auto through = keys.dial();
  CHECK(answer_on(*through) == "no, not_admitted, nobody is");
  CHECK(keys.counted == std::vector<std::string>{"not_admitted"});
  const desk silent(nullptr, false);
  CHECK(answer_on(*silent.dial()) == "no, not_ours");
}

TEST_CASE("the number of open requests is limited and one that ends makes room") {
  const desk host;
  std::vector<std::shared_ptr<fake_pipe>> all;
  for (std::size_t i = 0; i < most_control_requests; ++i) all.push_back(host.dial());
  CHECK(host.dial()->closed);
  CHECK_FALSE(all[0]->closed);
  all[0]->break_off();
  CHECK_FALSE(host.dial()->closed);
  CHECK(host.dial()->closed);
}

TEST_CASE("a request that takes too long is closed and so are all when the host closes") {
  const desk host;
  const auto first = host.dial(1s), second = host.dial(2s);
  host.requests->close_overdue(6s, 5s);
  CHECK_FALSE(first->closed);
  host.requests->close_overdue(6s + 1ms, 5s);
  CHECK(first->closed);
  CHECK_FALSE(second->closed);
  host.requests->close();
  CHECK(second->closed);
  CHECK(host.dial()->closed);
}
