// Which handler the server has for each operation, bound by its type. The files with handlers bind their own; context.h
// lists them.
#pragma once

#include <type_traits>

#include "pif/base/result.h"
#include "pif/wire/bindings.h"

namespace pif::server {

struct ServerContext;
struct Call;

// When an operation need not wait until the server serves: a sum of these.
enum When : unsigned { kOnlyServing = 0, kWhileGathering = 1, kWhileBehind = 2, kWhileHeld = 4, kAlways = 7 };

struct Handler {
  Status (*run)(ServerContext&, Call&) = nullptr;
  unsigned when = kOnlyServing;
};

class Operations {
 public:
  // kHandler: Status(ServerContext&, Call&, const R&, wire::ReplyTo<R>&); without the last if R is answered by Done, or
  // not at all.
  template <auto kHandler>
  void bind(unsigned when = kOnlyServing) {
    bindings_.bind<RequestOf<kHandler>>({&run<kHandler>, when});
  }
  // Null for what is not the server's.
  const Handler* find(int op_case) const { return bindings_.find(op_case); }
  void start() const { bindings_.start(); }

 private:
  template <typename R, typename Reply>
  static R request_of(Status (*)(ServerContext&, Call&, const R&, Reply&));
  template <typename R>
  static R request_of(Status (*)(ServerContext&, Call&, const R&));
  template <auto kHandler>
  using RequestOf = decltype(request_of(kHandler));

  template <auto kHandler>
  static Status run(ServerContext& context, Call& call);

  wire::Bindings<wire::Daemon::kServer, Handler> bindings_;
};

}  // namespace pif::server
