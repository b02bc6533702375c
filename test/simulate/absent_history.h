// What histories have in common whose LFSs are away for some time and come back: the person who looks after them, and
// the waiting for members.
#pragma once

#include "simulate/absences.h"
#include "simulate/history_base.h"
#include "simulate/teller.h"

namespace pif::simulate {

class AbsentHistory : public History {
 public:
  Outcome judge() {
    Outcome out = run();
    out.losses = absences_.losses();
    return out;
  }

 protected:
  AbsentHistory(Plan plan, const std::function<void(const std::string&)>& tell)
      : History(std::move(plan), tell), absences_(shared_) {
    if (plan_.bevy > 0) shared_.absences = &absences_;
  }
  void begin_work() override;
  void await_healed() override;

  // false: it took too long, which is a violation.
  bool await_members(Teller& client, const std::string& when);
  bool await_lost(Teller& client, unsigned lfs);
  // The LFS is killed, or loses its power, and is lost. Then `inspect` is called, and it comes back.
  bool drill(Teller& client, unsigned lfs, const std::function<void(const std::string& when)>& inspect);
  // For a while: until no file is being created, or being removed.
  void await_tidy(Teller& client);

 private:
  void attend(sim::Actor& self);

 protected:
  Absences absences_;
};

}  // namespace pif::simulate
