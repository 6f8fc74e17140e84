// The message lists of all protocols, joined. A new protocol adds its header and its list here.
// Registration, counting, the scope check and the tests then cover its messages. Only
// actors/messages.cpp and tests include this header; a protocol includes the messages that it uses.
#pragma once

#include "actors/averaging/averager_messages.hpp"
#include "actors/averaging/guard_messages.hpp"
#include "actors/averaging/messages.hpp"
#include "actors/data/messages.hpp"
#include "actors/data/proof_messages.hpp"
#include "actors/dht/messages.hpp"
#include "actors/experts/messages.hpp"
#include "actors/host_messages.hpp"
#include "actors/inference/messages.hpp"
#include "actors/message_list.hpp"
#include "actors/pipeline/messages.hpp"
#include "actors/reachability/messages.hpp"
#include "actors/training/messages.hpp"
#include "actors/trust/evidence.hpp"
#include "actors/trust/verdict.hpp"

namespace shoal::actors {

using all_messages =
    joined<averager_messages, dht_messages, data_messages, proof_messages, averaging_messages,
           state_messages, host_messages, reachability_messages, trust_messages, guard_messages,
           verdict_messages, inference_messages, expert_messages, pipeline_messages>;

} // namespace shoal::actors
