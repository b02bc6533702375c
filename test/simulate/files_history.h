// A history of files, their records, and their names.
#pragma once

#include "libtool/sim_tools.h"
#include "simulate/history_base.h"
#include "simulate/workload.h"

namespace pif::simulate {

class FilesHistory : public History {
 public:
  FilesHistory(Plan plan, const std::function<void(const std::string&)>& tell);

 protected:
  void first(sim::Actor& self) override;
  void work(sim::Actor& self, unsigned index) override;
  // All files can be read, changed and made.
  void last(sim::Actor& self) override;
  virtual void inspect_file(Workload& client, std::size_t path);

 private:
  void inspect_status(Workload& client);

  sim::Names names_;
};

}  // namespace pif::simulate
