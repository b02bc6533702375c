// What a client does that knows nothing but names: many at once, on the same few of them.
#pragma once

#include "simulate/teller.h"

namespace pif::simulate {

class NamesWorkload : public Teller {
 public:
  using Teller::Teller;

  // The paths there can be: folders, and names in them.
  static void add_paths(Paths& paths);
  void run(unsigned operations);
  // Looks at every path.
  void see_all();

 private:
  void one();
  void make_empty(std::size_t path);
  void make_folder(std::size_t path);
  void rename_some(std::size_t path);
  void see(std::size_t path);
  void list(std::size_t folder);
  std::size_t any_path() { return dice_.below(shared_.paths.size()); }
};

}  // namespace pif::simulate
