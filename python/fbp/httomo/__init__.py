"""fbp as a method of HTTomo.

    python -m fbp.httomo            tells HTTomo about the method
    python -m fbp.httomo --remove   takes that back

HTTomo reads what it knows of a method from the package ``httomo_backends``. The command copies three files to it: the
template of the method, its entry in the database of methods, and the shape of its results. A pipeline then names the module
``fbp.httomo.algorithm`` and the method ``reconstruct``; docs/python.md has one.
"""
