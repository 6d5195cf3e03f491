// Holds a robot at a posture with gravity compensation and a PD law, on a frozen world; prints the final error.
//
// Usage: controller robot.flz        (frozen with queries=("full_m",); motors at the first nu DoFs)
#include <cmath>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "featherlane.h"

class World {
 public:
  explicit World(const char *path) {
    char error[256];
    world_.reset(fl_open(path, nullptr, error, sizeof error));
    if (!world_) throw std::runtime_error(std::string(path) + ": " + error);
  }
  double *reals(const char *name) {
    double *found = fl_reals(world_.get(), name);
    if (!found) throw std::runtime_error(std::string("no field ") + name);
    return found;
  }
  int size(const char *name) const { return static_cast<int>(fl_size(world_.get(), name)); }
  void forward() { fl_forward(world_.get()); }
  void step() { fl_step(world_.get(), 1); }
  bool query(const char *name) { return fl_query(world_.get(), name, nullptr) != 0; }

 private:
  struct Close {
    void operator()(fl_world *w) const { fl_close(w); }
  };
  std::unique_ptr<fl_world, Close> world_;
};

int main(int argc, char **argv) try {
  if (argc != 2) throw std::runtime_error("usage: controller FILE");
  World world(argv[1]);
  const int nv = world.size("nv"), nu = world.size("nu");
  double *ctrl = world.reals("ctrl"), *qpos = world.reals("qpos"), *qvel = world.reals("qvel");
  const std::vector<double> goal(qpos, qpos + nu);  // the posture of the file
  for (int i = 0; i < nu; i++) qpos[i] += 0.2;
  for (int k = 0; k < 3000; k++) {
    world.forward();
    if (!world.query("full_m")) throw std::runtime_error("the file has no query full_m");
    const double *mass = world.reals("jac_M"), *bias = world.reals("qfrc_bias");
    const double *passive = world.reals("qfrc_passive");
    for (int i = 0; i < nu; i++) {  // computed torque: M (kp e - kd v) + bias - passive
      ctrl[i] = bias[i] - passive[i];
      for (int j = 0; j < nu; j++) ctrl[i] += mass[nv * i + j] * (100.0 * (goal[j] - qpos[j]) - 20.0 * qvel[j]);
    }
    world.step();
  }
  double largest = 0.0;
  for (int i = 0; i < nu; i++) largest = std::fmax(largest, std::fabs(goal[i] - qpos[i]));
  std::printf("largest error: %.2e rad\n", largest);
  return largest < 1e-3 ? 0 : 1;
} catch (const std::exception &error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
