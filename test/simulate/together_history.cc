// Histories of files that several clients write together, with or without parity.
#include <fmt/format.h>

#include "simulate/absent_history.h"
#include "simulate/together_workload.h"

namespace pif::simulate {
namespace {

using namespace std::chrono_literals;

constexpr unsigned kMembers = 2;    // of the last file, beside who begins it
constexpr Duration kFillMax = 60s;  // for what they write
constexpr Duration kAskAfter = 65s;

class TogetherHistory final : public AbsentHistory {
 public:
  TogetherHistory(Plan plan, const std::function<void(const std::string&)>& tell)
      : AbsentHistory(std::move(plan), tell), together_(oracle_) {
    for (const char* path : {"/a", "/b", "/c", "/d"}) paths_.add(path);
    shared_.together = &together_;
  }

  Outcome judge_commits() {
    Outcome out = judge();
    out.commits = together_.commits();
    return out;
  }

 private:
  void first(sim::Actor& self) override;
  void work(sim::Actor& self, unsigned index) override;
  void last(sim::Actor& self) override;

  void inspect(TogetherWorkload& client, const std::string& when);
  // Everybody is well: a file that several write comes to its end.
  void fill_one(TogetherWorkload& client);
  void help(sim::Actor& self, unsigned number, std::uint64_t file);

  Together together_;
  unsigned helping_ = 0;
};

void TogetherHistory::first(sim::Actor& self) {
  TogetherWorkload client(shared_, self, "first", plan_.seed + 1);
  if (is_served(client)) (void)(client.begin_file(0, true) && client.write() && client.commit());
}

void TogetherHistory::work(sim::Actor& self, unsigned index) {
  TogetherWorkload client(shared_, self, self.name(), plan_.seed * 31 + index);
  if (client.connect()) client.run(plan_.operations);
}

void TogetherHistory::inspect(TogetherWorkload& client, const std::string& when) {
  for (std::size_t path = 0, count = paths_.size(); path < count; ++path) {
    if (client.read(path)) continue;
    const Error& why = client.last_error();
    if (why.code != Code::kNotFound || !why.node.empty())
      accuse(fmt::format("{}: read {}: {}", when, paths_.text(path), why.to_string()));
  }
}

void TogetherHistory::help(sim::Actor& self, unsigned number, std::uint64_t file) {
  TogetherWorkload client(shared_, self, self.name(), plan_.seed + 5 + number);
  const bool is_right = client.connect() && client.join(file) && client.write() && client.read_unfinished() &&
                        client.write() && client.done();
  if (!is_right) accuse("after healing: " + self.name() + ": " + client.last_error().to_string());
  --helping_;
}

void TogetherHistory::fill_one(TogetherWorkload& client) {
  const std::size_t fresh = paths_.add("/fresh");
  bool is_right = client.begin_file(fresh, true) && client.write();
  const std::uint64_t file = client.subject();
  for (unsigned i = 0; is_right && i < kMembers; ++i, ++helping_)
    world_.spawn(fmt::format("helper{}", i), [this, i, file](sim::Actor& self) { help(self, i, file); });
  for (const Time end = world_.now() + kFillMax; helping_ > 0 && world_.now() < end;) client.pause(10ms);
  if (helping_ > 0) return accuse("after healing: who fills a file does not come to an end");
  is_right = is_right && client.commit() && client.read(fresh) && client.remove(fresh);
  if (!is_right) accuse("after healing: to fill a file: " + client.last_error().to_string());
}

void TogetherHistory::last(sim::Actor& self) {
  TogetherWorkload client(shared_, self, "last", plan_.seed + 2);
  self.pause(3s);
  if (!is_served(client)) return;
  if (plan_.bevy > 0 && !await_members(client, "at the end")) return;
  inspect(client, "after healing");
  fill_one(client);
  for (unsigned first = 0; first < 2 * plan_.bevy; first += plan_.bevy) {
    const unsigned lfs = first + static_cast<unsigned>(world_.pick(plan_.bevy));
    if (!drill(client, lfs, [&](const std::string& when) { inspect(client, when); })) return;
  }
  await_tidy(client);
  world_.leap(kAskAfter);  // LFSs ask what became of what was begun, and given up
  self.pause(4s);
  together_.note_commits();
}

}  // namespace

Outcome run_together_history(std::uint64_t seed, const std::function<void(const std::string&)>& tell) {
  TogetherHistory history(Plan::for_together(seed), tell);
  return history.judge_commits();
}

}  // namespace pif::simulate
