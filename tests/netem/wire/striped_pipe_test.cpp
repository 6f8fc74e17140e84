// netem/wire/striped_pipe: the order of frames over several connections, their ends, and the
// collection of stripes.
#include "kernels/base/rng.hpp"
#include "netem/wire/striped_pipe.hpp"
#include "tests/netem/wire/fake_pipe.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

using namespace shoal;
using namespace shoal::netem::wire;
using namespace std::chrono_literals;

namespace {

frame text_frame(const std::string& text) {
  return {std::vector<char>(text.begin(), text.end()), {}};
}

std::string numbered(std::uint64_t number, const std::string& text) {
  std::string out(sizeof(number), '\0');
  std::memcpy(out.data(), &number, sizeof(number));
  return out + text;
}

std::string text_of(const frame& what) {
  return {what.head.begin(), what.head.end()};
}

std::string greeting(std::uint64_t token, int which, int count) {
  return text_of(to_frame(
      stripe_greeting{token, static_cast<std::uint8_t>(which), static_cast<std::uint8_t>(count)}));
}

/// A pipe over fake connections that this host has dialled.
struct dialled_pipe {
  std::vector<std::shared_ptr<fake_pipe>> stripes;
  std::shared_ptr<striped_pipe> whole;
  std::vector<std::string> got;
  std::vector<std::string> closed;

  explicit dialled_pipe(std::size_t count) {
    std::vector<std::shared_ptr<netem::wire::pipe>> made;
    for (std::size_t i = 0; i < count; ++i) {
      stripes.push_back(std::make_shared<fake_pipe>(1));
      made.push_back(stripes.back());
    }
    whole = striped_pipe::over("bulk", 7, std::move(made));
    whole->start([this](const payload& bytes) { got.push_back(text(bytes)); },
                 [this](const std::string& why) { closed.push_back(why); });
  }
  static std::string text(const payload& bytes) {
    const auto all = bytes.bytes();
    return {reinterpret_cast<const char*>(all.data()), all.size()};
  }
};

} // namespace

TEST_CASE("the first frame of each stripe names its pipe and its place") {
  dialled_pipe p(3);
  for (std::size_t i = 0; i < 3; ++i) {
    REQUIRE(p.stripes[i]->sent.size() == 1);
    const auto said = read_stripe_greeting(bytes_of(p.stripes[i]->sent[0]));
    REQUIRE(said);
    CHECK(said->token == 7);
    CHECK(said->which == i);
    CHECK(said->count == 3);
  }
}

TEST_CASE("greetings that no correct host sends are refused") {
  const auto read = [](const std::string& text) {
    return read_stripe_greeting(std::as_bytes(std::span(text))).has_value();
  };
  CHECK(read(greeting(1, 0, 2)));
  CHECK_FALSE(read(greeting(1, 0, 1)));
  CHECK_FALSE(read(greeting(1, 2, 2)));
  CHECK_FALSE(read(greeting(1, 0, most_stripes + 1)));
  CHECK_FALSE(read(greeting(1, 0, 2) + "x"));
  CHECK_FALSE(read(greeting(1, 0, 2).substr(1)));
  CHECK_FALSE(read(""));
}

TEST_CASE("frames take turns and avoid a stripe that is behind") {
  dialled_pipe p(3);
  for (const auto& each : p.stripes) each->sent.clear();
  p.stripes[1]->queued = 1000;
  for (int i = 0; i < 6; ++i) p.whole->send(text_frame("f"));
  CHECK(p.stripes[0]->sent.size() == 3);
  CHECK(p.stripes[1]->sent.empty());
  CHECK(p.stripes[2]->sent.size() == 3);
  CHECK(p.whole->queued_bytes() == 1000);
  std::vector<std::uint64_t> numbers;
  for (const auto& stripe : p.stripes)
    for (const auto& each : stripe->sent) {
      std::uint64_t number = 0;
      std::memcpy(&number, each.head.data(), sizeof(number));
      numbers.push_back(number);
    }
  std::sort(numbers.begin(), numbers.end());
  CHECK(numbers == std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5});
}

TEST_CASE("frames are handed on in order whatever order they come in") {
  rng draw(5);
  for (int trial = 0; trial < 200; ++trial) {
    dialled_pipe p(4);
    std::vector<std::vector<std::uint64_t>> on(4); // each stripe keeps its order
    for (std::uint64_t i = 0; i < 40; ++i) on[draw.below(4)].push_back(i);
    std::vector<std::size_t> at(4, 0);
    for (int left = 40; left > 0;) {
      const auto which = draw.below(4);
      if (at[which] == on[which].size()) continue;
      const auto number = on[which][at[which]++];
      p.stripes[which]->receive(numbered(number, std::to_string(number)));
      --left;
    }
    REQUIRE(p.got.size() == 40);
    for (std::size_t i = 0; i < 40; ++i) CHECK(p.got[i] == std::to_string(i));
    for (const auto& each : p.stripes) CHECK(each->unhandled == 0);
  }
}

TEST_CASE("a frame that comes too early is charged to its stripe and to no other") {
  dialled_pipe p(2);
  p.stripes[1]->receive(numbered(1, "later"));
  CHECK(p.got.empty());
  CHECK(p.stripes[1]->unhandled > 0);
  CHECK(p.stripes[0]->unhandled == 0);
  p.stripes[0]->receive(numbered(0, "first"));
  CHECK(p.got == std::vector<std::string>{"first", "later"});
  CHECK(p.stripes[1]->unhandled == 0);
  p.whole->window().add(100);
  CHECK(p.stripes[0]->unhandled == 100);
  CHECK(p.stripes[1]->unhandled == 100);
  p.whole->window().remove(100);
  CHECK(p.stripes[0]->unhandled == 0);
}

TEST_CASE("a frame with a used number or without one closes the pipe") {
  for (const auto& bad : {numbered(0, "again"), std::string("short"), numbered(5, "")}) {
    dialled_pipe p(2);
    p.stripes[0]->receive(numbered(0, "first"));
    p.stripes[1]->receive(bad);
    CHECK(p.whole->malformed());
    CHECK(p.stripes[0]->closed);
    CHECK(p.stripes[1]->closed);
    CHECK(p.got == std::vector<std::string>{"first"});
  }
}

TEST_CASE("when a stripe closes the others end and the pipe says so once with the first reason") {
  dialled_pipe p(3);
  p.stripes[1]->break_off();
  for (const auto& each : p.stripes) CHECK(each->finished);
  CHECK(p.closed.empty());
  p.stripes[0]->receive(numbered(0, "still comes"));
  CHECK(p.got.size() == 1);
  p.stripes[0]->break_off();
  p.stripes[2]->break_off();
  CHECK(p.closed == std::vector<std::string>{"broken"});
}

TEST_CASE("a pipe may be dropped while its last frame is handled") {
  auto p = std::make_unique<dialled_pipe>(2);
  const auto stripes = p->stripes;
  p->whole.reset();
  stripes[0]->break_off();
  stripes[1]->break_off();
  CHECK(p->closed.size() == 1);
}

namespace {

/// Stripes that another process has opened.
struct collection {
  std::vector<std::shared_ptr<netem::wire::pipe>> whole;
  std::vector<std::string> got;
  int closed = 0;
  std::shared_ptr<stripe_sets> sets =
      std::make_shared<stripe_sets>("bulk", [this](std::shared_ptr<netem::wire::pipe> made) {
        made->start([this](const payload& bytes) { got.push_back(dialled_pipe::text(bytes)); },
                    [this](const std::string&) { ++closed; });
        whole.push_back(std::move(made));
      });

  std::shared_ptr<fake_pipe> stripe(const std::string& certificate = "one", duration now = 0s) {
    auto out = std::make_shared<fake_pipe>(1);
    out->shown = certificate;
    sets->incoming(out, now);
    return out;
  }
};

} // namespace

TEST_CASE("a pipe is there once all its stripes have come, and loses no frame that came before") {
  collection c;
  const auto b = c.stripe(), a = c.stripe();
  b->receive(greeting(9, 1, 2));
  b->receive(numbered(0, "hello"));
  CHECK(c.whole.empty());
  a->receive(greeting(9, 0, 2));
  REQUIRE(c.whole.size() == 1);
  CHECK(c.whole[0]->kind() == "bulk");
  CHECK(c.whole[0]->certificate() == "one");
  CHECK(c.got == std::vector<std::string>{"hello"});
  a->receive(numbered(1, "more"));
  CHECK(c.got.size() == 2);
  // The side that was dialled greets nobody.
  c.whole[0]->send(text_frame("back"));
  CHECK(a->sent.size() + b->sent.size() == 1);
  a->break_off();
  b->break_off();
  CHECK(c.closed == 1);
}

TEST_CASE("stripes of two members or of two pipes are never mixed") {
  collection c;
  const auto a = c.stripe("one"), b = c.stripe("other"), d = c.stripe("one");
  a->receive(greeting(9, 0, 2));
  b->receive(greeting(9, 1, 2));
  d->receive(greeting(8, 1, 2));
  CHECK(c.whole.empty());
  const auto e = c.stripe("one");
  e->receive(greeting(9, 1, 2));
  CHECK(c.whole.size() == 1);
}

TEST_CASE("a stripe without a greeting, with a taken place or another count is closed") {
  collection c;
  const auto bad = c.stripe();
  bad->receive("nonsense");
  CHECK(bad->closed);
  const auto a = c.stripe(), again = c.stripe(), other = c.stripe();
  a->receive(greeting(9, 0, 2));
  again->receive(greeting(9, 0, 2));
  CHECK(again->closed);
  CHECK_FALSE(a->closed);
  other->receive(greeting(9, 1, 3));
  CHECK(other->closed);
  CHECK(c.whole.empty());
}

TEST_CASE("stripes that wait too long are closed, and so is a set that loses one") {
  collection c;
  const auto silent = c.stripe("one", 0s), half = c.stripe("one", 1s), late = c.stripe("one", 9s);
  half->receive(greeting(9, 0, 2));
  c.sets->close_overdue(10s, 5s);
  CHECK(silent->closed);
  CHECK(half->closed);
  CHECK_FALSE(late->closed);
  half->break_off();
  late->receive(greeting(9, 1, 2));
  CHECK(c.whole.empty()); // the first half has gone
  c.sets->close();
  CHECK(late->closed);
  CHECK(c.stripe()->closed);
}

TEST_CASE("one member cannot take all places of stripes that wait") {
  collection c;
  std::size_t refused = 0;
  for (int i = 0; i < 100; ++i) refused += c.stripe("greedy")->closed ? 1 : 0;
  CHECK(refused == 36);
  CHECK_FALSE(c.stripe("other")->closed);
}
