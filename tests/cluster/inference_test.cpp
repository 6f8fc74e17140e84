// An inference swarm of processes with TLS. Servers are killed, stopped and told to leave while a
// client writes. The text is the one that the model writes alone.
#include "scenarios/inference/inference_swarm.hpp"
#include "scenarios/inference/text_stream.hpp"
#include "tests/cluster/support/swarm.hpp"
#include "tests/support/skip.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <csignal>
#include <random>

using namespace shoal;
using namespace shoal::cluster;

namespace {

constexpr auto slow_patience = 4 * patience;
constexpr std::uint32_t tokens = 400;
const std::string prompt = "a";

/// Servers of the model 'random' that hold each layer twice, and clients.
class reef {
public:
  reef() : keys_({}) {}

  node_process& serve(const std::string& name, const std::string& blocks,
                      const std::vector<std::string>& more = {}) {
    const auto at =
        fmt::format("127.0.0.1:{}", ports_.try_emplace(name, free_port()).first->second);
    std::vector<std::string> arguments{"serve-model", "random", "--blocks", blocks,
                                       "--listen",    at,       "--keys",   keys_.keys_of(name)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    for (const auto& [other, port] : ports_)
      if (other != name) {
        arguments.push_back("--join");
        arguments.push_back(fmt::format("127.0.0.1:{}", port));
      }
    auto& slot = servers_[name];
    slot.reset();
    slot = std::make_unique<node_process>(keys_.folder().path(),
                                          fmt::format("{}-{}", name, ++lives_), arguments);
    const bool chooses = blocks.find(':') == std::string::npos;
    REQUIRE_MESSAGE(slot->says(chooses ? "chooses" : "serves layers", slow_patience), slot->err());
    return *slot;
  }
  std::unique_ptr<node_process> chat(std::vector<std::string> more) {
    std::vector<std::string> arguments{"chat", "random", "--keys", keys_.keys_of("reader")};
    for (const auto& [name, port] : ports_) {
      arguments.push_back("--join");
      arguments.push_back(fmt::format("127.0.0.1:{}", port));
    }
    arguments.insert(arguments.end(), more.begin(), more.end());
    return std::make_unique<node_process>(keys_.folder().path(), fmt::format("chat-{}", ++lives_),
                                          arguments);
  }
  std::unique_ptr<node_process> write(const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments{"--prompt",      prompt, "--tokens", std::to_string(tokens),
                                       "--temperature", "1",    "--seed",   "5"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return chat(std::move(arguments));
  }
  node_process& server(const std::string& name) { return *servers_.at(name); }
  swarm& keys() { return keys_; }

private:
  swarm keys_;
  std::map<std::string, std::uint16_t> ports_;
  std::map<std::string, std::unique_ptr<node_process>> servers_;
  int lives_ = 0;
};

/// The output of a chat that writes one text with the model 'random'.
const std::string& expected() {
  static const std::string out = [] {
    const auto model = learn::random_served_model(5, 1);
    auto all = model.encode(prompt);
    for (const auto token : scenarios::write_alone(model, all, tokens, {.temperature = 1}, 5, 1))
      all.push_back(token);
    auto text = scenarios::as_utf8(model.codec->decode(all));
    return text.ends_with('\n') ? text : text + "\n";
  }();
  return out;
}

std::vector<std::string> users_of(const std::string& news, const std::vector<std::string>& names) {
  const auto last = news.rfind("[layers");
  std::vector<std::string> out;
  for (const auto& name : names)
    if (last != std::string::npos && news.find(" on " + name, last) != std::string::npos)
      out.push_back(name);
  return out;
}

enum class harm { kill, stop, leave };

/// Harms a server in use when the client has written at least `at` bytes, and is not done. Returns
/// what the client tells.
std::string write_with(reef& in, harm how, std::size_t at) {
  const std::vector<std::string> names{"a", "b", "c", "d"};
  std::unique_ptr<node_process> writes;
  for (bool in_time = false; !in_time;) {
    writes = in.write();
    REQUIRE_MESSAGE(
        wait_until([&] { return writes->out().size() >= at || !writes->running(); }, slow_patience),
        writes->err());
    // The client waits here, so that the server is in use when it is harmed.
    writes->signal(SIGSTOP);
    in_time = writes->running() && writes->out().size() + 10 < expected().size();
  }
  const auto used = users_of(writes->err(), names);
  REQUIRE_MESSAGE(!used.empty(), writes->err());
  auto& victim = in.server(used[at % used.size()]);
  victim.signal(how == harm::kill ? SIGKILL : how == harm::stop ? SIGSTOP : SIGTERM);
  writes->signal(SIGCONT);
  CHECK_MESSAGE(writes->wait(slow_patience) == 0, writes->err());
  CHECK(writes->out() == expected());
  if (how == harm::stop) victim.signal(SIGCONT);
  if (how == harm::leave) CHECK(victim.wait(slow_patience) == 0);
  return writes->err();
}

void start_all(reef& in) {
  in.serve("a", "0:3");
  in.serve("b", "3:5");
  in.serve("c", "0:2");
  in.serve("d", "2:5");
}

} // namespace

TEST_CASE("cluster: a text over processes survives kills and stops and departures of servers") {
  reef in;
  start_all(in);
  CHECK(write_with(in, harm::kill, 60).find("[layers") != std::string::npos);
  for (const auto& [name, blocks] :
       {std::pair{"a", "0:3"}, {"b", "3:5"}, {"c", "0:2"}, {"d", "2:5"}})
    if (!in.server(name).running()) in.serve(name, blocks);
  write_with(in, harm::stop, 150);
  write_with(in, harm::leave, 100);
}

TEST_CASE("cluster: thirty deaths at random moments leave the text") {
  SHOAL_NIGHTLY();
  reef in;
  start_all(in);
  std::mt19937_64 draws(7);
  for (int i = 0; i < 30; ++i) {
    CAPTURE(i);
    const auto how = static_cast<harm>(i % 3);
    write_with(in, how, 1 + draws() % (tokens - 50));
    for (const auto& [name, blocks] :
         {std::pair{"a", "0:3"}, {"b", "3:5"}, {"c", "0:2"}, {"d", "2:5"}})
      if (!in.server(name).running()) in.serve(name, blocks);
  }
}

TEST_CASE("cluster: a chat waits while no server holds some layers and goes on when one comes") {
  reef in;
  in.serve("a", "0:3");
  in.serve("b", "3:5");
  auto writes = in.write();
  REQUIRE(wait_until([&] { return writes->out().size() >= 40; }, slow_patience));
  in.server("b").signal(SIGKILL);
  CHECK_MESSAGE(writes->says("no server holds layers 3:5: waiting for one", slow_patience),
                writes->err());
  in.serve("b", "3:5");
  CHECK_MESSAGE(writes->wait(slow_patience) == 0, writes->err());
  CHECK(writes->out() == expected());
}

TEST_CASE("cluster: a chat with checks tells no word of a server that computes wrongly") {
  reef in;
  // The fastest route has one hop, so the client tries this server first.
  in.serve("a", "0:5", {"--conduct", "wrong_layers"});
  for (const char* name : {"b", "c"}) in.serve(name, "0:3");
  for (const char* name : {"d", "e"}) in.serve(name, "3:5");
  const auto finds_the_liar = [](const node_process& one) {
    return one.err().find("[a computes wrongly: ") != std::string::npos;
  };
  // Two honest opinions need the records of all servers, which come soon after their start.
  bool known = false;
  for (int tries = 0; tries < 20 && !known; ++tries) {
    const auto first = in.write({"--check", "0.05"});
    first->wait(slow_patience); // until then, a text may stay without a check or be disputed
    known = finds_the_liar(*first);
  }
  const auto writes = in.write({"--check", "0.05"});
  CHECK_MESSAGE(writes->wait(slow_patience) == 0, writes->err());
  CHECK(writes->out() == expected());
  CHECK_MESSAGE(finds_the_liar(*writes), writes->err());
}

TEST_CASE("cluster: a chat with checks tells nothing that two servers dispute") {
  reef in;
  in.serve("a", "0:5", {"--conduct", "wrong_layers"});
  in.serve("b", "0:5");
  const auto writes = in.write({"--check", "0.001"});
  CHECK(writes->wait(slow_patience) == 3);
  CHECK(writes->out().size() < 3);
  CHECK_MESSAGE(writes->err().find("no further server decides") != std::string::npos,
                writes->err());
}

TEST_CASE("cluster: servers that choose their layers hold all of them") {
  reef in;
  for (const auto* name : {"a", "b", "c"}) in.serve(name, "2");
  auto writes = in.write();
  CHECK_MESSAGE(writes->wait(slow_patience) == 0, writes->err());
  CHECK(writes->out() == expected());
}

TEST_CASE("cluster: Ctrl-C ends a chat and a server in good order") {
  reef in;
  auto& a = in.serve("a", "0:5");
  auto writes = in.write();
  REQUIRE(wait_until([&] { return writes->out().size() >= 20; }, slow_patience));
  writes->signal(SIGINT);
  CHECK(writes->wait(slow_patience) == 130);
  CHECK(expected().starts_with(writes->out().substr(0, writes->out().size() - 1)));
  a.signal(SIGINT);
  CHECK(a.wait(slow_patience) == 0);
  CHECK(a.err().find("a: has left\n") != std::string::npos);
}
