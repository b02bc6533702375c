#include "simulate/plan.h"

#include <array>
#include <span>

#include <fmt/format.h>

namespace pif::simulate {
namespace {

using namespace std::chrono_literals;

constexpr std::array<const char*, 25> kNames = {
    "kill server", "cut server",  "kill lfs",       "cut lfs",     "kill client", "kill worker",  "break link",
    "partition",   "stall",       "fail once",      "fail sticky", "fill",        "write back",   "rot",
    "back up",     "restore lfs", "restore server", "wipe",        "swap",        "restore some", "take away",
    "replace",     "cut off",     "pause",          "disk fails"};

sim::Options world_of(Dice& dice) {
  sim::Options out;
  out.delay_max = dice.chance(50) ? 300us : 5ms;
  if (dice.chance(30)) out.drop = 0.02;
  if (dice.chance(30)) out.duplicate = 0.05;
  if (dice.chance(20)) out.reorder = 0.03;
  if (dice.chance(70)) out.work_max = dice.chance(50) ? 1ms : 20ms;
  out.steps_max = 200'000;
  return out;
}

// Few clients that work with files, and how their world is.
void draw_work(Plan& plan, Dice& dice) {
  plan.clients = static_cast<unsigned>(dice.from_to(1, 3));
  plan.operations = static_cast<unsigned>(dice.from_to(4, 12));
  if (dice.chance(50)) plan.log_bytes = 20u << 10;
  plan.world = world_of(dice);
}

// At most so many steps after the one before.
void add_strike(Plan& plan, Dice& dice, Strike strike, std::uint64_t steps_max) {
  plan.strikes.push_back(strike);
  plan.steps.push_back(dice.from_to(1, steps_max));
}

void add_one_of(Plan& plan, Dice& dice, std::span<const Strike> kinds, std::uint64_t steps_max) {
  add_strike(plan, dice, kinds[dice.below(kinds.size())], steps_max);
}

void draw_strikes(Plan& plan, Dice& dice) {
  std::vector<Strike> kinds;
  for (auto count = dice.from_to(1, 4); kinds.size() < count;) {
    const auto kind = static_cast<Strike>(dice.below(kStrikeKinds));
    if (kind != Strike::kRot || plan.rots) kinds.push_back(kind);
  }
  if (plan.rots) kinds.push_back(Strike::kRot);
  for (auto count = dice.from_to(1, 6); plan.strikes.size() < count;) {
    plan.strikes.push_back(kinds[dice.below(kinds.size())]);
    plan.steps.push_back(dice.from_to(1, dice.chance(50) ? 40 : 250));
  }
}

// Two bevies, of which one LFS after another is away.
void draw_absences(Plan& plan, Dice& dice) {
  constexpr Strike kAway[] = {Strike::kTakeAway, Strike::kTakeAway, Strike::kTakeAway,
                              Strike::kReplace,  Strike::kCutOff,   Strike::kPause};
  constexpr Strike kOthers[] = {Strike::kKillServer, Strike::kCutServer, Strike::kKillClient, Strike::kBreakLink,
                                Strike::kPartition,  Strike::kStall,     Strike::kWriteBack};
  plan.bevy = dice.chance(60) ? 2 : dice.chance(60) ? 3 : 4;
  plan.lfss = 2 * plan.bevy;
  plan.is_far = dice.chance(40);
  plan.timeout = dice.chance(60) ? 8s : 40s;
  draw_work(plan, dice);
  plan.world.steps_max = 600'000;  // eight LFSs, and patience
  for (auto count = dice.from_to(1, 3); count > 0; --count) {
    for (auto others = dice.below(3); others > 0; --others) add_one_of(plan, dice, kOthers, 300);
    add_one_of(plan, dice, kAway, dice.chance(50) ? 60 : 600);
  }
  for (auto others = dice.below(3); others > 0; --others) add_one_of(plan, dice, kOthers, 900);
}

// What comes while others are away.
void draw_overlaps(Plan& plan, Dice& dice) {
  constexpr Strike kAway[] = {Strike::kTakeAway, Strike::kTakeAway, Strike::kCutOff, Strike::kPause};
  for (auto count = dice.from_to(1, 3); count > 0; --count) add_one_of(plan, dice, kAway, dice.chance(50) ? 60 : 600);
}

void draw_failing_disks(Plan& plan, Dice& dice) {
  if (!dice.chance(35)) return;
  for (auto count = dice.from_to(1, 2); count > 0; --count)
    add_strike(plan, dice, Strike::kDiskFails, dice.chance(50) ? 60 : 600);
}

// Of files with parity.
Plan with_absences(std::uint64_t seed, bool overlaps) {
  Dice dice(seed ^ 0x626576696573);
  Plan plan;
  plan.seed = seed;
  plan.overlaps = overlaps;
  draw_absences(plan, dice);
  if (overlaps) draw_overlaps(plan, dice);
  draw_failing_disks(plan, dice);
  return plan;
}

}  // namespace

std::uint64_t Dice::below(std::uint64_t limit) {
  state_ += 0x9e3779b97f4a7c15;
  std::uint64_t x = state_;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return (x ^ (x >> 31)) % limit;
}

std::string name_of(Strike strike) { return kNames[static_cast<std::size_t>(strike)]; }

Plan Plan::from(std::uint64_t seed) {
  Dice dice(seed);
  Plan plan;
  plan.seed = seed;
  plan.lfss = static_cast<unsigned>(dice.from_to(1, 3));
  plan.clients = static_cast<unsigned>(dice.from_to(1, 3));
  plan.operations = static_cast<unsigned>(dice.from_to(3, 9));
  if (dice.chance(50)) plan.log_bytes = 20u << 10;
  plan.rots = dice.chance(8);
  plan.world = world_of(dice);
  if (!dice.chance(10)) draw_strikes(plan, dice);
  return plan;
}

Plan Plan::for_names(std::uint64_t seed) {
  constexpr Strike kKinds[] = {Strike::kKillServer, Strike::kCutServer, Strike::kKillClient, Strike::kBreakLink,
                               Strike::kPartition,  Strike::kStall,     Strike::kFailOnce};
  Dice dice(seed ^ 0x6e616d6573);
  Plan plan;
  plan.seed = seed;
  plan.lfss = 1;
  plan.clients = 16;
  plan.operations = static_cast<unsigned>(dice.from_to(3, 8));
  plan.world = world_of(dice);
  for (auto count = dice.below(6); plan.strikes.size() < count;) add_one_of(plan, dice, kKinds, 150);
  return plan;
}

Plan Plan::for_restores(std::uint64_t seed) {
  constexpr Strike kOthers[] = {Strike::kKillServer, Strike::kCutServer, Strike::kKillLfs,   Strike::kCutLfs,
                                Strike::kKillClient, Strike::kBreakLink, Strike::kWriteBack, Strike::kKillWorker};
  constexpr Strike kPutBack[] = {Strike::kRestoreLfs,    Strike::kRestoreLfs,    Strike::kRestoreLfs,
                                 Strike::kRestoreServer, Strike::kRestoreServer, Strike::kRestoreServer,
                                 Strike::kRestoreSome,   Strike::kRestoreSome,   Strike::kRestoreSome,
                                 Strike::kWipe,          Strike::kSwap};
  Dice dice(seed ^ 0x726573746f7265);
  Plan plan;
  plan.seed = seed;
  plan.restores = true;
  plan.accepts = dice.chance(50);
  plan.lfss = static_cast<unsigned>(dice.from_to(1, 3));
  draw_work(plan, dice);
  for (auto count = dice.from_to(1, 3); count > 0; --count) {
    for (auto backups = dice.from_to(1, 4); backups > 0; --backups)
      add_strike(plan, dice, Strike::kBackUp, dice.chance(50) ? 30 : 200);
    for (auto others = dice.below(3); others > 0; --others) add_one_of(plan, dice, kOthers, 60);
    add_one_of(plan, dice, kPutBack, dice.chance(50) ? 30 : 200);
  }
  return plan;
}

Plan Plan::for_bevies(std::uint64_t seed) { return with_absences(seed, false); }

Plan Plan::for_overlaps(std::uint64_t seed) { return with_absences(seed, true); }

Plan Plan::for_together(std::uint64_t seed) {
  constexpr Strike kKinds[] = {Strike::kKillServer, Strike::kCutServer,  Strike::kKillLfs,    Strike::kCutLfs,
                               Strike::kKillClient, Strike::kKillClient, Strike::kBreakLink,  Strike::kPartition,
                               Strike::kStall,      Strike::kFailOnce,   Strike::kFailSticky, Strike::kFill,
                               Strike::kWriteBack};
  Dice dice(seed ^ 0x746f676574686572);
  Plan plan;
  plan.seed = seed;
  if (dice.chance(30)) {
    draw_absences(plan, dice);
  } else {
    plan.lfss = static_cast<unsigned>(dice.from_to(1, 3));
    plan.is_far = dice.chance(20);
    draw_work(plan, dice);
    for (auto count = dice.below(6); count > 0; --count) add_one_of(plan, dice, kKinds, dice.chance(50) ? 60 : 600);
  }
  plan.clients = static_cast<unsigned>(dice.from_to(2, 4));
  plan.operations = static_cast<unsigned>(dice.from_to(6, 20));
  if (dice.chance(25)) {  // writes that come again after others
    plan.world.duplicate = 0.2;
    plan.world.reorder = 0.1;
  }
  return plan;
}

std::string Plan::to_string() const {
  std::string out = fmt::format(
      "seed {}: {} LFSs, {} clients, {} operations each, log of {} bytes, work {} us, drop {}, "
      "duplicate {}, reorder {}; strikes:",
      seed, lfss, clients, operations, log_bytes,
      std::chrono::duration_cast<std::chrono::microseconds>(world.work_max).count(), world.drop, world.duplicate,
      world.reorder);
  if (bevy > 0)
    out += fmt::format(" (bevies of {}{}{}, timeout {} s)", bevy, is_far ? ", far" : "", overlaps ? ", overlaps" : "",
                       std::chrono::duration_cast<std::chrono::seconds>(timeout).count());
  if (restores) out += accepts ? " (accepts)" : " (brings back)";
  for (std::size_t i = 0; i < strikes.size(); ++i)
    out += fmt::format(" +{} {}{}", steps[i], name_of(strikes[i]), i + 1 < strikes.size() ? "," : "");
  return out;
}

}  // namespace pif::simulate
