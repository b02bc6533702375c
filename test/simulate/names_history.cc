#include "simulate/history_base.h"
#include "simulate/names_workload.h"

namespace pif::simulate {
namespace {

using namespace std::chrono_literals;

class NamesHistory final : public History {
 public:
  NamesHistory(std::uint64_t seed, const std::function<void(const std::string&)>& tell)
      : History(Plan::for_names(seed), tell) {
    NamesWorkload::add_paths(paths_);
  }

 private:
  void first(sim::Actor& self) override {
    NamesWorkload client(shared_, self, "first", plan_.seed + 1);
    (void)is_served(client);
  }
  void work(sim::Actor& self, unsigned index) override {
    NamesWorkload client(shared_, self, self.name(), plan_.seed * 31 + index);
    if (client.connect()) client.run(plan_.operations);
  }
  void last(sim::Actor& self) override {
    NamesWorkload client(shared_, self, "last", plan_.seed + 2);
    self.pause(3s);
    if (is_served(client)) client.see_all();
  }
};

}  // namespace

Outcome run_names_history(std::uint64_t seed, const std::function<void(const std::string&)>& tell) {
  NamesHistory history(seed, tell);
  return history.run();
}

}  // namespace pif::simulate
