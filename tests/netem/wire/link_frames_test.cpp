#include "netem/wire/link_frames.hpp"
#include "tests/netem/wire/fake_pipe.hpp"

#include <doctest/doctest.h>

using namespace shoal::netem::wire;

namespace {

node_key some_node() {
  node_key out;
  out.incarnation = 6;
  out.host.fill(3);
  return out;
}

frame_kind kind_of(const frame& what) {
  return static_cast<frame_kind>(what.head.at(0));
}

/// One frame of each kind on a link that is up, with all its fields.
std::vector<frame> one_of_each() {
  using enum frame_kind;
  const std::uint64_t number = 0x1122334455667788;
  const std::uint32_t ordinal = 17;
  std::vector<frame> out;
  out.push_back(frame_writer(ping).put(number).done());
  out.push_back(frame_writer(pong).put(number).done());
  out.push_back(frame_writer(watch).put(ordinal).done());
  out.push_back(frame_writer(ended).put(ordinal).done());
  out.push_back(frame_writer(where_is).put(some_node()).done());
  out.push_back(frame_writer(node_at)
                    .put(some_node())
                    .put(std::string_view("lab-3"))
                    .put(std::string_view("10.0.0.5:7000"))
                    .done());
  out.push_back(frame_writer(introduce).put(number).done());
  out.push_back(frame_writer(relay_end).put(some_node()).put(number).done());
  out.push_back(frame_writer(revocation_list_number).put(number).done());
  out.push_back(frame_writer(revocation_list).put(std::string_view("a list")).done());
  return out;
}

template <class T>
T read_as(const frame& what) {
  const auto read = read_link_frame(kind_of(what), bytes_of(what));
  REQUIRE(read);
  REQUIRE(std::holds_alternative<T>(*read));
  return std::get<T>(*read);
}

} // namespace

TEST_CASE("the fields of every frame are read as they were written") {
  const auto all = one_of_each();
  const std::uint64_t number = 0x1122334455667788;
  CHECK(read_as<ping_frame>(all[0]).stamp == number);
  CHECK(read_as<pong_frame>(all[1]).stamp == number);
  CHECK(read_as<watch_frame>(all[2]).ordinal == 17);
  CHECK(read_as<ended_frame>(all[3]).ordinal == 17);
  CHECK(read_as<where_is_frame>(all[4]).node == some_node());
  const auto told = read_as<node_at_frame>(all[5]);
  CHECK(told.node == some_node());
  CHECK(told.name == "lab-3");
  CHECK(told.address == "10.0.0.5:7000");
  CHECK(read_as<introduce_frame>(all[6]).service == number);
  const auto over = read_as<relay_end_frame>(all[7]);
  CHECK(over.other == some_node());
  CHECK(over.link == number);
  CHECK(read_as<revocation_list_number_frame>(all[8]).number == number);
  CHECK(read_as<revocation_list_frame>(all[9]).pem == "a list");
}

TEST_CASE("an answer about a host has no address or one that can be dialled, and a clean name") {
  const auto reads = [](std::string_view name, std::string_view address) {
    const auto what =
        frame_writer(frame_kind::node_at).put(some_node()).put(name).put(address).done();
    return read_link_frame(frame_kind::node_at, bytes_of(what)).has_value();
  };
  CHECK(reads("lab-3", "10.0.0.5:7000"));
  CHECK(reads("", "10.0.0.5:7000"));
  CHECK(reads("lab-3", ""));
  CHECK_FALSE(reads("lab-3", "unix:/tmp/socket"));
  CHECK_FALSE(reads("lab\x1b[31m", "10.0.0.5:7000"));
}

TEST_CASE("a frame that is truncated or has a byte too many is refused") {
  for (auto each : one_of_each()) {
    CAPTURE(static_cast<int>(kind_of(each)));
    const auto whole = bytes_of(each);
    for (std::size_t size = 1; size < whole.size(); ++size) {
      if (kind_of(each) == frame_kind::ping && size == 1) continue; // a ping that wants no answer
      CHECK_FALSE(read_link_frame(kind_of(each), whole.first(size)));
    }
    each.head.push_back(0);
    CHECK_FALSE(read_link_frame(kind_of(each), bytes_of(each)));
  }
}

TEST_CASE("a ping without a stamp wants no answer and a goodbye has no fields") {
  CHECK_FALSE(read_as<ping_frame>(frame_writer(frame_kind::ping).done()).stamp);
  read_as<leaving_frame>(frame_writer(frame_kind::leaving).done());
  CHECK_FALSE(
      read_link_frame(frame_kind::leaving,
                      bytes_of(frame_writer(frame_kind::leaving).put(std::uint8_t{0}).done())));
}

TEST_CASE("late hellos and refusals are not read again") {
  read_as<late_hello>(frame_writer(frame_kind::hello).done());
  read_as<late_refusal>(frame_writer(frame_kind::refused).put(std::uint64_t{0}).done());
}

TEST_CASE("names and addresses that are too long are refused and so are unknown kinds") {
  const auto told = [](std::size_t name, std::size_t address) {
    const auto what = frame_writer(frame_kind::node_at)
                          .put(some_node())
                          .put(std::string_view(std::string(name, 'n')))
                          .put(std::string_view(std::string(address - 5, 'a') + ":7000"))
                          .done();
    return read_link_frame(frame_kind::node_at, bytes_of(what)).has_value();
  };
  CHECK(told(63, 300));
  CHECK_FALSE(told(64, 300));
  CHECK_FALSE(told(63, 301));
  const std::byte unknown[] = {std::byte{0}};
  for (const int kind : {0, 19, 255})
    CHECK_FALSE(read_link_frame(static_cast<frame_kind>(kind), unknown));
}
