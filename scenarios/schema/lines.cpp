#include "scenarios/schema/lines.hpp"

#include <algorithm>
#include <array>

namespace shoal::scenarios {
namespace {

using enum netem::jitter_shape;

path_options line(duration delay, duration jitter, netem::jitter_shape shape, double loss) {
  path_options out;
  out.delay = delay;
  out.jitter = jitter;
  out.distribution = shape;
  out.loss = loss;
  return out;
}

data_rate mbit(double rate) {
  return {rate * 1e6};
}

// Rates are common tiers of each technology, not averages. Each delay is one-way, half of the round
// trip that the source gives for the access line. WPT means WebPageTest, connectivity.ini.sample,
// `latency`. Jitter and loss are round figures for a line that is not saturated. The transfer model
// adds the delay of the line's own queue, whose length is the last figure. For DSL and cable,
// Dischinger et al. measured downstream queues ("Characterizing Residential Broadband Networks",
// IMC 2007, section 5). For LTE, Jiang et al. did ("Tackling Bufferbloat in 3G/4G Networks", IMC
// 2012). The others are round figures, such as a switch port of 0.6 MB for `lan`.
const std::array line_presets{
    // VDSL2 (ITU-T G.993.2) 50/10; WPT "DSL": 50 ms.
    line_preset{"dsl", mbit(10), mbit(50), line(25ms, 3ms, normal, 0.001), 130ms},
    // DOCSIS 3.0 100/20; WPT "Cable": 28 ms. The upstream is granted in slots, hence the jitter.
    line_preset{"cable", mbit(20), mbit(100), line(14ms, 4ms, normal, 0.0005), 100ms},
    // GPON 300/150; WPT "FIOS": 4 ms.
    line_preset{"fibre", mbit(150), mbit(300), line(2ms, 500us, normal, 0.0001), 30ms},
    // WPT "LTE": 12/12 Mbit, 70 ms. The link layer retransmits lost frames, so that loss shows as
    // a long tail of delay.
    line_preset{"lte", mbit(12), mbit(12), line(35ms, 10ms, paretonormal, 0.001), 400ms},
    // Cable behind a home's 802.11n at some distance: half of its 20 MHz channel's 72 Mbit, 2 ms
    // more each way.
    line_preset{"wifi", mbit(20), mbit(36), line(16ms, 6ms, pareto, 0.005), 100ms},
    // Geostationary, 35,786 km up: 119 ms to the satellite, as much down again.
    line_preset{"satellite_geo", mbit(3), mbit(25), line(300ms, 20ms, normal, 0.005), 500ms},
    // Low orbit (550 km); delay as published by Starlink for its users: 25 to 60 ms round trip.
    line_preset{"satellite_leo", mbit(10), mbit(100), line(20ms, 8ms, paretonormal, 0.005), 100ms},
    // An office: 1000BASE-T.
    line_preset{"lan", mbit(1000), mbit(1000), line(100us, 0ms, uniform, 0), 5ms},
    // A virtual machine with 10GBASE-T or what clouds sell as "up to 10 Gbit".
    line_preset{"data_centre", mbit(10000), mbit(10000), line(50us, 0ms, uniform, 0), 20ms},
};

} // namespace

const line_preset* find_line(std::string_view name) {
  const auto found = std::find_if(line_presets.begin(), line_presets.end(),
                                  [&](const line_preset& p) { return p.name == name; });
  return found == line_presets.end() ? nullptr : &*found;
}

} // namespace shoal::scenarios
