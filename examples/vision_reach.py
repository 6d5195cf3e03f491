"""Trains an arm to reach a ball from depth images of 64 x 64 pixels; needs `pip install '.[torch]'`.

    python examples/vision_reach.py             # 128 worlds, 2500 steps of each
    python examples/vision_reach.py 16 20       # worlds, steps

The policy is a small convolutional network from one noisy depth image to the changes of three servos.  Its loss is the
distance between tip and ball after the change, to first order: |tip + J change - ball|, with the tip's Jacobian J of
each world from the engine.  So the engine computes the gradient of the reward with respect to the action, and no
teacher is needed.  Positions and Jacobians are used in training only: the policy acts on depth alone.

Source: Xu et al., Accelerated policy learning with parallel differentiable simulation (2022); here the horizon is one
step.
"""

import sys
import time

import numpy as np
import torch
from torch import nn

import featherlane as fl

ARM = """
<mujoco>
  <option timestep=".01" integrator="implicitfast"/>
  <default><geom type="capsule" size=".03" contype="0" conaffinity="0"/><joint damping="1" armature=".05"/>
    <position kp="60" dampratio="1"/></default>
  <worldbody>
    <light pos="1 -1 2" dir="-1 1 -2"/>
    <camera name="eye" pos="1.3 0 1" xyaxes="0 1 0 -.6 0 .8" fovy="45"/>
    <geom type="plane" size="1 1 .1" rgba=".8 .8 .75 1"/>
    <body pos="0 0 .1" gravcomp="1"><joint name="turn" axis="0 0 1"/><geom fromto="0 0 -.1 0 0 .15" size=".05"/>
      <body pos="0 0 .15" gravcomp="1"><joint name="lift" axis="0 1 0"/><geom fromto="0 0 0 0 0 .3"/>
        <body pos="0 0 .3" gravcomp="1"><joint name="bend" axis="0 1 0"/><geom fromto="0 0 0 0 0 .25"/>
          <site name="tip" pos="0 0 .28"/></body></body></body>
    <body name="ball" mocap="true" pos=".4 0 .3"><geom type="sphere" size=".05" rgba=".9 .3 .2 1"/></body>
  </worldbody>
  <actuator><position joint="turn"/><position joint="lift"/><position joint="bend"/></actuator>
</mujoco>
"""
EYE = fl.Camera(
    "eye",
    width=64,
    height=64,
    output="depth",
    noise=fl.DepthNoise(std=0.003, dropout=0.002, fill=1.9, seed=1),
)
NEAR, FAR = 0.6, 1.9  # [m], depths that are mapped to 0 and 1
# angles of the joints [rad]
LOW, HIGH = (np.array([-1.6, -0.6, 0.1]), np.array([1.6, 1.6, 2.4]))
CHANGE = 0.2  # largest change of an angle in a step [rad]
STEPS, FRAMES = 25, 8  # steps of an episode, time steps of each
REACHED = 0.05  # [m], the radius of the ball


class Policy(nn.Module):
    """Maps depth images (n, 64, 64) to changes of the angles, from -1 to 1, and estimated positions of tip and ball.

    The estimates serve training only: they are an auxiliary loss of the convolutions.
    """

    def __init__(self):
        super().__init__()
        self.look = nn.Sequential(
            *(
                nn.Conv2d(1, 12, 5, 2, 2),
                nn.ReLU(),
                nn.Conv2d(12, 16, 3, 2, 1),
                nn.ReLU(),
            ),
            *(
                nn.Conv2d(16, 16, 3, 2, 1),
                nn.ReLU(),
                nn.Flatten(),
                nn.Linear(16 * 64, 128),
                nn.ReLU(),
            ),
        )
        self.places, self.move = (
            nn.Linear(128, 6),
            nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 3)),
        )
        self.register_buffer("usual", torch.zeros(64, 64))  # the mean image

    def forward(self, images):
        seen = self.look(5.0 * (images - self.usual)[:, None])
        return self.move(seen).tanh(), self.places(seen)


class Reaching:
    """Worlds with an arm and a ball each: images, positions of the tips and their Jacobians.

    Args:
        n: worlds.
        seed: of initial states.
    """

    def __init__(self, n, seed):
        self.batch, self.random = (
            fl.Batch(fl.load(ARM), n, dtype="float32"),
            np.random.default_rng(seed),
        )
        self.tip = self.batch.bind("site_xpos")
        self.start(np.arange(n))

    def start(self, ids):
        """Sets a random pose and a random ball in front of the arm."""
        n, random = len(ids), self.random
        self.batch.reset(ids, forward=False)
        self.batch.qpos[ids] = self.batch.ctrl[ids] = random.uniform(LOW, HIGH, (n, 3))
        angle, far, high = random.uniform([-1.2, 0.25, 0.1], [1.2, 0.45, 0.5], (n, 3)).T
        self.batch.mocap_pos[ids, 0] = np.stack(
            [far * np.cos(angle), far * np.sin(angle), high], 1
        )
        # the noise of an image depends on the world's time
        self.batch.time[ids] = random.uniform(0.0, 1e3, n)
        self.batch.forward()

    def images(self):
        """Returns depths (n, 64, 64), mapped to 0 to 1."""
        depth = self.batch.render(EYE).depth
        return torch.from_numpy(np.clip((depth - NEAR) / (FAR - NEAR), 0.0, 1.0))

    def places(self):
        """Returns positions of tip and ball (n, 6) [m], and the tip's derivatives (n, 3, 3) by the angles."""
        both = np.concatenate([self.tip[:, 0], self.batch.mocap_pos[:, 0]], axis=1)
        return torch.from_numpy(both), torch.from_numpy(self.batch.jac_site("tip")[0])

    def act(self, actions):
        """Moves the servos' set points by actions (n, 3) from -1 to 1."""
        self.batch.ctrl[:] = np.clip(self.batch.qpos + CHANGE * actions, LOW, HIGH)
        self.batch.step(FRAMES)
        self.batch.forward()


def distances(policy, n, seed):
    """Returns the distance of each tip from its ball at the end of an episode of n new worlds [m]."""
    worlds = Reaching(n, seed)
    for _ in range(STEPS):
        with torch.no_grad():
            worlds.act(policy(worlds.images())[0].numpy())
    places = worlds.places()[0]
    return (places[:, :3] - places[:, 3:]).norm(dim=1).numpy()


def train(policy, n, steps, interval=250):
    """Trains the policy in n worlds; prints the errors after each interval of steps."""
    worlds, ages = Reaching(n, 0), np.arange(n) % STEPS
    optimizer = torch.optim.Adam(policy.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=steps)
    policy.usual[:] = worlds.images().mean(0)
    start, used, losses = time.time(), time.process_time(), []
    for k in range(steps):
        places, jacobian = worlds.places()
        actions, estimates = policy(worlds.images())
        after = (
            places[:, :3]
            - places[:, 3:]
            + CHANGE * torch.einsum("nij,nj->ni", jacobian, actions)
        )
        distance, error = after.norm(dim=1).mean(), (estimates - places).abs().mean()
        loss = distance + error
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append((distance.item(), error.item()))
        noise = worlds.random.normal(0.0, 0.3, (n, 3))
        worlds.act(np.clip(actions.detach().numpy() + noise, -1.0, 1.0))
        ages += 1
        if (over := np.flatnonzero(ages >= STEPS)).size:
            worlds.start(over)
            ages[over] = 0
        if (k + 1) % interval == 0:
            passed = f"{time.time() - start:.0f} s, {time.process_time() - used:.0f} s of processors"
            far, wrong = 100 * np.mean(losses[-interval:], axis=0)
            print(
                f"step {k + 1}: distance {far:.1f} cm, error of estimated coordinates {wrong:.1f} cm, {passed}"
            )


def main(n=128, steps=2500):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    policy = Policy()
    report("before", distances(policy, 2 * n, 1))
    train(policy, n, steps)
    report("after", distances(policy, 2 * n, 1))


def report(when, distance):
    reached = 100 * (distance < REACHED).mean()
    print(
        f"{when} training: {100 * np.median(distance):.1f} cm from the ball (median), {reached:.0f} % reach it"
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
