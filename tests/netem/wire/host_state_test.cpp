#include "netem/wire/host_state.hpp"
#include "tests/netem/wire/host_fixture.hpp"

using namespace shoal;
using namespace shoal::netem::wire;
using namespace std::chrono_literals;
using netem::host_index;

TEST_CASE("a message to a host without a link waits while the host is dialled and is sent when the "
          "link is up") {
  host_fixture host;
  host.state.hosts.of(7).address = "10.0.0.7:7000";
  host.send(7, 100);
  host.state.watch({7, 3}, host.now, host.later);
  CHECK(host.dialled == std::vector<std::string>(2, "10.0.0.7:7000"));
  REQUIRE(host.later.greet.size() == 1);
  const auto link = host.later.greet[0].with;
  CHECK(link->dialled);
  bool other_version = false;
  const auto own = read_hello(bytes_of(host.later.greet[0].hello), other_version);
  REQUIRE(own);
  CHECK(own->name == "own");
  CHECK(own->link == link->token);
  CHECK(host.all.messages_lost == 0);

  hello theirs;
  theirs.name = "lab-7";
  REQUIRE(host.state.take_hello(*link, theirs));
  const auto up = host.state.connect(link, 7, {}, {}, {}, host.now);
  CHECK(up.done);
  REQUIRE(up.first);
  CHECK(up.first->name == "lab-7");
  CHECK(host.all.linked == 1);
  CHECK(pipe_of(*link, 0).sent.size() == 2); // the observed actors, and then the message
  CHECK(pipe_of(*link, 0).take_kinds()[0] == frame_kind::watch);
  CHECK_FALSE(host.state.take_hello(*link, {})); // the hello of the other pipe
}

TEST_CASE("a host that cannot be reached is given up after the detection time with all waiting "
          "messages") {
  host_fixture host;
  host.state.hosts.of(7).address = "10.0.0.7:7000";
  host.send(7, 100);
  host.send(7, 100);
  const auto link =
      host.later.greet.empty() ? host.state.hosts.of(7).dialling : host.later.greet[0].with;
  host.now += 300ms;
  CHECK(host.state.tick(host.now).hosts.empty()); // a dial is in progress
  CHECK(host.state.remove(link, host.now).link == link);
  CHECK(host.state.tick(host.now).hosts == std::vector<host_index>{7});
  host.now += 5s;
  const auto due = host.state.tick(host.now);
  REQUIRE(due.given_up.size() == 1);
  CHECK(due.given_up[0] == std::pair<host_index, std::size_t>{7, 2});
  CHECK(host.state.tick(host.now).given_up.empty());
}

TEST_CASE("a host whose address refuses twice is given up at once, unless another host told that "
          "address") {
  host_fixture host;
  const auto dial_and_refuse = [&](host_index to) {
    host.now += 2s;
    host.send(to, 100);
    const auto link = host.state.hosts.of(to).dialling;
    REQUIRE(link);
    host.state.remove(link, host.now, true);
  };
  host.state.hosts.of(7).address = "10.0.0.7:7000";
  dial_and_refuse(7);
  CHECK(host.state.tick(host.now).given_up.empty());
  dial_and_refuse(7);
  const auto due = host.state.tick(host.now);
  REQUIRE(due.given_up.size() == 1);
  CHECK(due.given_up[0] == std::pair<host_index, std::size_t>{7, 2});
  // The next message is a question whether the process is there again.
  host.send(7, 100);
  CHECK(host.state.tick(host.now).given_up.empty()); // the dial is in progress
  host.state.remove(host.state.hosts.of(7).dialling, host.now, true);
  CHECK(host.state.tick(host.now).given_up.size() == 1);

  const auto liar = host.linked(1, "lab-1");
  for (int i = 0; i < 3; ++i) {
    host.now += 1s;
    host.send(8, 100);
    host.state.learn_where(*liar, {node(8), "lab-8", "10.6.6." + std::to_string(i) + ":7000"},
                           host.now, host.later);
    if (const auto link = host.state.hosts.of(8).dialling) host.state.remove(link, host.now, true);
    CHECK(host.state.tick(host.now).given_up.empty());
  }
}

TEST_CASE("a host whose address two hosts tell and which refuses is given up after a round trip") {
  host_fixture host;
  const auto one = host.linked(1, "lab-1"), two = host.linked(2, "lab-2"),
             three = host.linked(3, "lab-3");
  const auto says = [&](const std::shared_ptr<host_link>& who, const char* address) {
    host.state.learn_where(*who, {node(8), "lab-8", address}, host.now, host.later);
  };
  const auto given_up = [&] { return host.state.tick(host.now).given_up.size(); };
  host.send(8, 100);
  says(one, "10.0.0.8:7000");
  const auto& wanted = host.state.hosts.of(8);
  REQUIRE(wanted.dialling);
  host.state.remove(wanted.dialling, host.now, true);
  CHECK(given_up() == 0);
  host.dial_due(); // the others are asked at once
  says(one, "10.0.0.8:7000");
  host.now += 250ms;
  SUBCASE("one host says it twice") {
    CHECK(given_up() == 0);
  }
  SUBCASE("a second host says the same") {
    says(two, "10.0.0.8:7000");
    CHECK(given_up() == 1);
    host.send(8, 100); // the process may be there again
    CHECK(given_up() == 0);
  }
  SUBCASE("a third host knows another address") {
    says(two, "10.0.0.8:7000");
    says(three, "10.0.0.9:7000");
    CHECK(given_up() == 0);
    CHECK(wanted.dialling);
  }
}

TEST_CASE("linked hosts are asked for the address of a host that has none") {
  host_fixture host;
  const auto friendly = host.linked(1, "lab-1");
  pipe_of(*friendly, 0).take_kinds();
  host.send(7, 100);
  CHECK(pipe_of(*friendly, 0).take_kinds() == kinds{frame_kind::where_is});
  CHECK(host.dialled.empty());
  host.state.learn_where(*friendly, {node(7), "lab-7", "10.0.0.7:7000"}, host.now, host.later);
  CHECK(host.dialled.size() == 2);
  CHECK(host.state.hosts.of(7).name == "lab-7");
  host.state.learn_where(*friendly, {node(7), "lab-7", "10.6.6.6:7000"}, host.now, host.later);
  CHECK(host.state.hosts.of(7).address == "10.0.0.7:7000"); // the first answer counts
}

TEST_CASE("a link that accepts no bytes must be closed") {
  wire_options options;
  options.most_queued = 1000;
  host_fixture host({}, options);
  const auto link = host.linked(1, "lab-1");
  pipe_of(*link, 0).queued = 1000;
  host.send(1, 10);
  CHECK(host.later.overfull == nullptr);
  pipe_of(*link, 0).queued = 1001;
  host.send(1, 10);
  CHECK(host.later.overfull == link);
}

TEST_CASE("a side that dials again replaces its link, and links dialled from both sides coexist") {
  using replaced = std::vector<std::shared_ptr<host_link>>;
  host_fixture host;
  const auto oldest = host.linked(1, "lab-1"), old = host.linked(1, "lab-1");
  CHECK_FALSE(host.last.first);
  CHECK(host.state.hosts.of(1).up == old);
  // The other side may not know yet that the newer link is up.
  CHECK(host.last.replaced.empty());
  const auto again = host.linked(1, "lab-1");
  CHECK(host.last.replaced == replaced{oldest});
  CHECK(host.state.hosts.of(1).up == again);
  host.state.remove(oldest, host.now);
  const auto ours = host.linked(1, "lab-1", "", true);
  CHECK(host.last.replaced.empty());
  CHECK(host.state.hosts.of(1).up == again);
  host.state.remove(old, host.now);
  CHECK_FALSE(host.state.remove(again, host.now).lost);
  CHECK(host.state.hosts.of(1).up == ours);
  const auto gone = host.state.remove(ours, host.now);
  REQUIRE(gone.lost);
  CHECK(gone.lost->name == "lab-1");
  CHECK(host.all.linked == 0);
  CHECK(host.all.lost == 1);
  CHECK(host.state.remove(ours, host.now).link == nullptr);
}

TEST_CASE("a host that has dialled again ends its older link when the newer one is up") {
  host_fixture host;
  const auto old = host.linked(1, "lab-1", "", true), again = host.linked(1, "lab-1", "", true);
  CHECK(host.last.replaced == std::vector<std::shared_ptr<host_link>>{old});
  CHECK_FALSE(host.state.remove(old, host.now).lost);
  CHECK(host.state.hosts.of(1).up == again);
}

TEST_CASE("a host holds at most two links that another one has dialled") {
  host_fixture host;
  const auto ours = host.linked(1, "lab-1", "", true);
  for (int i = 0; i < 100; ++i) {
    host.linked(1, "lab-1");
    for (const auto& each : host.last.replaced) host.state.remove(each, host.now);
    CHECK(host.state.links.up().size() <= 3);
    CHECK(host.state.hosts.of(1).up == ours);
  }
}

TEST_CASE("a new incarnation replaces older ones and the name of a living process is taken") {
  host_fixture host;
  host.linked(5, "lab-1", "10.0.0.1:7000");
  hello theirs;
  theirs.name = "lab-1";
  theirs.incarnation = 6;
  CHECK(host.state.check_name(theirs, {}, host.now).text ==
        "there is a host with the name lab-1, at 10.0.0.1:7000");
  host.now += 5s;
  // The older process has been silent.
  CHECK(host.state.check_name(theirs, {}, host.now).why == refusal::none);
  theirs.incarnation = 4;
  CHECK(host.state.check_name(theirs, {}, host.now).why == refusal::name_taken);
  host.linked(6, "lab-1");
  CHECK(host.last.dead == std::vector<host_index>{5});
}

TEST_CASE("a banned host is refused until the ban ends, by its key or by its name without keys") {
  host_fixture host;
  host.state.faults.ban("mallory", host.now, 60s);
  hello theirs;
  theirs.name = "mallory";
  CHECK(host.state.check_name(theirs, {}, host.now).why == refusal::banned);
  CHECK(host.state.check_name(theirs, {}, host.now + 60s).why == refusal::none);
  // With keys, a new name does not help, and nobody suffers for another's fault.
  const std::string key(32, 'k'), other(32, 'o');
  host.state.faults.ban(key, host.now, 60s);
  CHECK(host.state.check_name(theirs, other, host.now).why == refusal::none);
  theirs.name = "mallory-2";
  CHECK(host.state.check_name(theirs, key, host.now).why == refusal::banned);
}

TEST_CASE("an answer about a host counts only if it was asked for, and once") {
  host_fixture host;
  const auto friendly = host.linked(1, "lab-1"), liar = host.linked(2, "mallory");
  host.state.hosts.of(7); // a host that nobody has asked about
  host.state.learn_where(*liar, {node(7), "lab-7", "10.6.6.6:7000"}, host.now, host.later);
  CHECK(host.state.hosts.of(7).address.empty());
  host.send(7, 100);
  host.later = {};
  const auto stranger = host.linked(3, "lab-3"); // this link came after the question
  host.state.learn_where(*stranger, {node(7), "lab-7", "10.6.6.6:7000"}, host.now, host.later);
  CHECK(host.dialled.empty());
  host.state.learn_where(*friendly, {node(7), "lab-7", "10.0.0.7:7000"}, host.now, host.later);
  CHECK(host.dialled == std::vector<std::string>{"10.0.0.7:7000", "10.0.0.7:7000"});
}

TEST_CASE("a false answer about a host is not used again while another host answers") {
  host_fixture host;
  const auto friendly = host.linked(1, "lab-1"), liar = host.linked(2, "mallory");
  const auto says = [&](const std::shared_ptr<host_link>& who, const char* address) {
    host.state.learn_where(*who, {node(7), "lab-7", address}, host.now, host.later);
  };
  host.send(7, 100);
  says(liar, "10.6.6.6:7000");
  REQUIRE(host.later.greet.size() == 1);
  const auto link = host.later.greet[0].with;
  SUBCASE("if nobody answers there") {
    host.state.remove(link, host.now);
  }
  SUBCASE("if another host answers there") {
    link->theirs.name = "mallory-2";
    CHECK(host.state.connect(link, 8, {}, {}, {}, host.now).done);
  }
  CHECK(host.state.hosts.of(7).address.empty());
  CHECK(host.state.hosts.of(7).dialling == nullptr);
  host.now += 2s;
  host.dial_due();
  host.dialled.clear();
  says(liar, "10.6.6.6:7000");
  CHECK(host.dialled.empty());
  says(friendly, "10.0.0.7:7000");
  CHECK(host.dialled == std::vector<std::string>{"10.0.0.7:7000", "10.0.0.7:7000"});
}

TEST_CASE("a host that has been gone for an hour is forgotten") {
  host_fixture host;
  const auto link = host.linked(1, "lab-1");
  host.linked(2, "lab-2");
  host.state.hosts.of(9);
  host.state.tick(host.now);
  host.now += 1h;
  host.state.remove(link, host.now);
  host.state.tick(host.now);
  CHECK(host.state.hosts.size() == 3);
  host.now += 1s;
  host.state.tick(host.now);
  CHECK(host.state.hosts.find(netem::host_index{9}) == nullptr);
  host.now += 1h;
  host.state.tick(host.now);
  CHECK(host.state.hosts.find(netem::host_index{1}) == nullptr);
  CHECK(host.state.hosts.find(netem::host_index{2}) != nullptr); // the link with this host is up
}

TEST_CASE(
    "a second frame before both hellos have joined is judged by the whole link on either pipe") {
  host_fixture host;
  const auto control = fake_link({0}), bulk = fake_link({1});
  host.state.links.add(control);
  host.state.links.add(bulk);
  hello theirs;
  theirs.name = "lab-1";
  theirs.link = 5;
  const auto step = [&](const std::shared_ptr<host_link>& of, int which, frame_kind kind) {
    const auto target = host.state.frame_came(of, which, kind, 100, host.now);
    return std::pair{target.link, target.step};
  };
  CHECK(step(bulk, 1, frame_kind::hello) == std::pair{bulk, frame_step::hello});
  CHECK(host.state.links.hello_came(bulk, 1, theirs) == nullptr);
  CHECK(step(bulk, 1, frame_kind::hello) == std::pair{bulk, frame_step::wrong});
  CHECK(host.state.links.hello_came(control, 0, theirs) == control);
  // The half link has lost its pipe. A second frame on the pipe finds the whole link, which has had
  // the hello.
  CHECK(step(bulk, 1, frame_kind::hello) == std::pair{control, frame_step::wrong});
  CHECK(step(bulk, 1, frame_kind::message) == std::pair{control, frame_step::wrong});
  CHECK(host.state.connect(control, 1, {}, {}, {}, host.now).done);
  CHECK(step(bulk, 1, frame_kind::message) == std::pair{control, frame_step::handle});
  REQUIRE(host.state.refuse(*control, host.now));
  CHECK_FALSE(host.state.refuse(*control, host.now));
  CHECK(step(bulk, 1, frame_kind::message) == std::pair{control, frame_step::drop});
}

TEST_CASE(
    "on an incoming link this host sends its hello first and then its revocation list's number") {
  host_fixture host;
  host.state.introduce(12, host.now);
  const auto link = fake_link();
  link->theirs.name = "lab-1";
  host.state.links.add(link);
  host.state.connect(link, 1, {}, {}, 4, host.now);
  CHECK(pipe_of(*link, 0).take_kinds() ==
        kinds{frame_kind::hello, frame_kind::revocation_list_number});
  CHECK(pipe_of(*link, 1).take_kinds() == kinds{frame_kind::hello});
  host.state.introduce(13, host.now);
  CHECK(pipe_of(*link, 0).take_kinds() == kinds{frame_kind::introduce});
}

TEST_CASE(
    "a host has left when its goodbye came on both pipes, or on one while the other is closed") {
  host_fixture host;
  const auto first = host.linked(1, "lab-1");
  CHECK_FALSE(host.state.goodbye_came(*first, 0));
  CHECK(host.state.goodbye_came(*first, 1));
  const auto second = host.linked(2, "lab-2");
  CHECK_FALSE(host.state.goodbye_came(*second, 1));
  CHECK(host.state.pipe_closed(second, 1).second == host_state::pipe_end::wait);
  CHECK(host.state.pipe_closed(second, 0).second == host_state::pipe_end::left);
  const auto third = host.linked(3, "lab-3");
  CHECK(host.state.pipe_closed(third, 0).second == host_state::pipe_end::lost);
}

TEST_CASE("a refused link waits for its other pipe, which may bring the reason") {
  host_fixture host;
  const auto link = fake_link();
  host.state.links.add(link);
  REQUIRE(host.state.refuse(*link, host.now));
  CHECK(host.state.pipe_closed(link, 0).second == host_state::pipe_end::wait);
  CHECK(host.state.pipe_closed(link, 1).second == host_state::pipe_end::lost);
}

TEST_CASE("a host that leaves says goodbye on both pipes and sends nothing more") {
  host_fixture host;
  const auto link = host.linked(1, "lab-1");
  for (const int i : {0, 1}) pipe_of(*link, i).take_kinds();
  CHECK(host.state.leave(host.now).size() == 2);
  for (const int i : {0, 1}) CHECK(pipe_of(*link, i).take_kinds() == kinds{frame_kind::leaving});
  host.send(1, 100);
  CHECK(pipe_of(*link, 0).sent.empty());
  CHECK_FALSE(host.state.is_open());
}

TEST_CASE("the end of an actor is told to its observers once") {
  host_fixture host;
  const auto link = host.linked(1, "lab-1"), other = host.linked(2, "lab-2");
  for (const auto& each : {link, other}) pipe_of(*each, 0).take_kinds();
  link->watched.insert(4);
  host.state.actor_ended(4, host.now);
  host.state.actor_ended(4, host.now);
  CHECK(pipe_of(*link, 0).take_kinds() == kinds{frame_kind::ended});
  CHECK(pipe_of(*other, 0).take_kinds().empty());
}

TEST_CASE("a link without a hello and a silent link end in time") {
  host_fixture host;
  host.state.tick(host.now);
  const auto half = fake_link({0});
  half->since = host.now;
  host.state.links.add(half);
  const auto link = host.linked(1, "lab-1");
  const auto ends_at = [&](duration when) {
    std::vector<std::string> out;
    host.state.tick(when - 1ms); // this process did not stand still
    for (const auto& [each, why] : host.state.tick(when).to_close) out.emplace_back(why);
    return out;
  };
  host.state.tick(host.now + 2s);
  host.state.tick(host.now + 4s);
  CHECK(ends_at(host.now + 5s).empty());
  CHECK(ends_at(host.now + 5s + 2ms) ==
        std::vector<std::string>{"no answer", "it has been silent"});
}

TEST_CASE("an address is joined on the next tick and again after the link is lost") {
  host_fixture host;
  host.state.joins.add("10.0.0.5:7000");
  host.dial_due();
  REQUIRE(host.later.greet.size() == 1);
  const auto link = host.later.greet[0].with;
  host.dial_due();
  CHECK(host.later.greet.empty());
  link->refused = refusal::name_taken;
  CHECK_FALSE(host.state.remove(link, host.now).cannot_join);
  host.now += 200ms;
  host.dial_due();
  CHECK(host.later.greet.size() == 1);
}
