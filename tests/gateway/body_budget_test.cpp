#include "gateway/body_budget.h"

#include <catch2/catch.hpp>

#include <array>
#include <string>

namespace stitchkit {
namespace {

/// Notes who was granted, in order.
class Owners {
 public:
  bool take(BodyBudget& budget, char name, std::uint64_t bytes) {
    return budget.take(idOf(name), bytes, [this, name] { granted_ += name; });
  }
  void giveBack(BodyBudget& budget, char name, std::uint64_t bytes) { budget.giveBack(idOf(name), bytes); }
  [[nodiscard]] const std::string& granted() const { return granted_; }

 private:
  const void* idOf(char name) { return &names_[static_cast<std::size_t>(name - 'a')]; }

  std::array<char, 26> names_{};
  std::string granted_;
};

TEST_CASE("a budget gives out what it has, to the byte") {
  BodyBudget budget(100);
  Owners owners;
  CHECK(owners.take(budget, 'a', 60));
  CHECK(owners.take(budget, 'b', 40));
  CHECK_FALSE(owners.take(budget, 'c', 1));
  owners.giveBack(budget, 'a', 60);
  CHECK(owners.granted() == "c");
  CHECK(owners.take(budget, 'd', 59));
  CHECK_FALSE(owners.take(budget, 'e', 1));
}

TEST_CASE("one larger than all there is may have it alone") {
  BodyBudget budget(100);
  Owners owners;
  CHECK(owners.take(budget, 'a', 1000));
  CHECK_FALSE(owners.take(budget, 'b', 1));
  owners.giveBack(budget, 'a', 1000);
  CHECK(owners.granted() == "b");
  CHECK_FALSE(owners.take(budget, 'c', 1000));
  owners.giveBack(budget, 'b', 1);
  CHECK(owners.granted() == "bc");
}

TEST_CASE("first come, first served: a large body is not passed over") {
  BodyBudget budget(100);
  Owners owners;
  CHECK(owners.take(budget, 'a', 50));
  CHECK_FALSE(owners.take(budget, 'b', 80));
  CHECK_FALSE(owners.take(budget, 'c', 10));  // would fit, and waits all the same
  owners.giveBack(budget, 'a', 50);
  CHECK(owners.granted() == "bc");
}

TEST_CASE("whoever leaves waits no longer, and makes way for those behind") {
  BodyBudget budget(100);
  Owners owners;
  CHECK(owners.take(budget, 'a', 50));
  CHECK_FALSE(owners.take(budget, 'b', 80));
  CHECK_FALSE(owners.take(budget, 'c', 50));
  owners.giveBack(budget, 'b', 0);
  CHECK(owners.granted() == "c");
  owners.giveBack(budget, 'a', 50);
  owners.giveBack(budget, 'c', 50);
  CHECK(owners.granted() == "c");
  CHECK(owners.take(budget, 'b', 100));
}

TEST_CASE("a grant may give back at once") {
  BodyBudget budget(100);
  std::string order;
  int a = 0;
  int b = 0;
  int c = 0;
  CHECK(budget.take(&a, 100, [] {}));
  CHECK_FALSE(budget.take(&b, 100, [&] {
    order += 'b';
    budget.giveBack(&b, 100);
  }));
  CHECK_FALSE(budget.take(&c, 100, [&] { order += 'c'; }));
  budget.giveBack(&a, 100);
  CHECK(order == "bc");
}

}  // namespace
}  // namespace stitchkit
